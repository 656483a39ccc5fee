// Package formats reads data in formats other than YAML and JSON as Python's libraries do: TOML, property lists and
// MessagePack. Mappings keep the order of the text.
package formats

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TOML reads a document. Dates and times are texts, as Python prints them.
func TOML(text []byte) (any, error) {
	r := tomlReader{root: value.NewMap(), named: map[*value.Map]bool{}}
	p := &unstable.Parser{}
	p.Reset(text)
	err := r.read(p)
	if err == nil {
		err = p.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("it is not TOML: %w", err)
	}
	return r.root, nil
}

type tomlReader struct {
	root  *value.Map
	named map[*value.Map]bool // tables that already had a heading
}

func (r tomlReader) read(p *unstable.Parser) (err error) {
	table := r.root
	for err == nil && p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			keys := tomlKeys(e.Key())
			if table, err = tomlTable(r.root, keys); err == nil && r.named[table] {
				err = fmt.Errorf("table %s is there twice", strings.Join(keys, "."))
			}
			r.named[table] = true
		case unstable.ArrayTable:
			table, err = tomlArrayTable(r.root, tomlKeys(e.Key()))
		case unstable.KeyValue:
			err = tomlSet(table, e)
		}
	}
	return err
}

func tomlKeys(it unstable.Iterator) []string {
	var keys []string
	for it.Next() {
		keys = append(keys, string(it.Node().Data))
	}
	return keys
}

// tomlTable returns the table at a path, and creates it if it does not exist. In an array of tables it is the last one.
func tomlTable(m *value.Map, keys []string) (*value.Map, error) {
	for _, key := range keys {
		if !m.Has(key) {
			m.Set(key, value.NewMap())
		}
		inner := m.Value(key)
		if list, ok := inner.(*value.List); ok && list.Len() > 0 {
			inner = list.Items[list.Len()-1]
		}
		below, ok := inner.(*value.Map)
		if !ok {
			return nil, fmt.Errorf("key %s is a value and a table", key)
		}
		m = below
	}
	return m, nil
}

// tomlArrayTable appends a table to an array of tables.
func tomlArrayTable(root *value.Map, keys []string) (*value.Map, error) {
	above, err := tomlTable(root, keys[:len(keys)-1])
	if err != nil {
		return nil, err
	}
	last := keys[len(keys)-1]
	if !above.Has(last) {
		above.Set(last, value.NewList())
	}
	list, ok := above.Value(last).(*value.List)
	if !ok {
		return nil, fmt.Errorf("key %s is an array of tables and something else", last)
	}
	table := value.NewMap()
	list.Append(table)
	return table, nil
}

func tomlSet(table *value.Map, e *unstable.Node) error {
	keys := tomlKeys(e.Key())
	v, err := tomlValue(e.Value())
	if err != nil {
		return err
	}
	last := keys[len(keys)-1]
	if table, err = tomlTable(table, keys[:len(keys)-1]); err == nil && table.Has(last) {
		err = fmt.Errorf("key %s is there twice", last)
	}
	if err == nil {
		table.Set(last, v)
	}
	return err
}

func tomlValue(n *unstable.Node) (any, error) {
	text := string(n.Data)
	switch n.Kind {
	case unstable.String:
		return text, nil
	case unstable.Bool:
		return text == "true", nil
	case unstable.Integer:
		whole, err := strconv.ParseInt(text, 0, 64)
		return int(whole), err
	case unstable.Float:
		return tomlFloat(text)
	case unstable.Array:
		return tomlArray(n)
	case unstable.InlineTable:
		table := value.NewMap()
		for it := n.Children(); it.Next(); {
			if err := tomlSet(table, it.Node()); err != nil {
				return nil, err
			}
		}
		return table, nil
	}
	return tomlTime(text), nil
}

func tomlArray(n *unstable.Node) (any, error) {
	list := value.NewList()
	for it := n.Children(); it.Next(); {
		item, err := tomlValue(it.Node())
		if err != nil {
			return nil, err
		}
		list.Append(item)
	}
	return list, nil
}

func tomlFloat(text string) (any, error) {
	switch strings.TrimLeft(text, "+-") {
	case "inf":
		if text[0] == '-' {
			return math.Inf(-1), nil
		}
		return math.Inf(1), nil
	case "nan":
		return math.NaN(), nil
	}
	return strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
}

// tomlTime formats a time as Python does.
func tomlTime(text string) string {
	if len(text) > 10 && strings.ContainsRune("Tt", rune(text[10])) {
		text = text[:10] + " " + text[11:]
	}
	if rest, ok := strings.CutSuffix(strings.ToUpper(text), "Z"); ok {
		return rest + "+00:00"
	}
	return text
}
