package salt

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

func dictFilters() map[string]jinja.Filter {
	keyed := []jinja.Param{
		jinja.Arg("in_dict"), jinja.Arg("keys"), jinja.Arg("value"), jinja.Opt("delimiter", ":"),
		jinja.Opt("ordered_dict", false),
	}
	return map[string]jinja.Filter{
		"append_dict_key_value": jinja.Define("append_dict_key_value", atKey(appendAt), keyed...),
		"compare_dicts":         jinja.Define("compare_dicts", compareDicts, jinja.Opt("old", nil), jinja.Opt("new", nil)),
		"extend_dict_key_value": jinja.Define("extend_dict_key_value", atKey(extendAt), keyed...),
		"method_call":           methodCall,
		"mysql_to_dict":         jinja.Define("mysql_to_dict", mysqlToDict, jinja.Arg("data"), jinja.Arg("key")),
		"set_dict_key_value":    jinja.Define("set_dict_key_value", atKey(setAt), keyed...),
		"traverse": jinja.Define("traverse", traverse, jinja.Arg("data"), jinja.Arg("key"),
			jinja.Opt("default", nil), jinja.Opt("delimiter", ":")),
		"update_dict_key_value": jinja.Define("update_dict_key_value", atKey(updateAt), keyed...),
	}
}

// methodCall calls a method by its name; it returns None if the method does not exist.
func methodCall(c *jinja.Call) (any, error) {
	if len(c.Args) < 2 {
		return nil, typeError("method_call() missing a required argument: 'f_name'")
	}
	name, err := c.Text(1)
	if err != nil {
		return nil, err
	}
	if _, err := c.Str(0); err != nil {
		return nil, err
	}
	m, err := c.GetAttr(c.Args[0], name)
	if _, missing := m.(*jinja.Undefined); missing || err != nil {
		return nil, err
	}
	return c.Invoke(m, c.Args[2:], c.Kwargs)
}

func mapArgument(c *jinja.Call, i int) (*value.Map, error) {
	if m, ok := c.Args[i].(*value.Map); ok {
		return m, nil
	}
	if _, err := c.Str(i); err != nil {
		return nil, err
	}
	return nil, typeError("expected a dict, not " + describe(c.Args[i]))
}

func compareDicts(c *jinja.Call) (any, error) {
	before, err := mapArgument(c, 0)
	if err != nil {
		return nil, err
	}
	after, err := mapArgument(c, 1)
	if err != nil {
		return nil, err
	}
	changes := value.NewMap().Plain()
	note := func(k, old, new any) {
		_ = changes.SetKey(k, value.NewMap("old", old, "new", new).Plain())
	}
	for k, v := range after.All() {
		old, ok, _ := before.GetKey(k)
		switch {
		case !ok:
			note(k, "", v)
		case !value.Equal(old, v):
			note(k, old, v)
		}
	}
	for k, v := range before.All() {
		if _, ok, _ := after.GetKey(k); !ok {
			note(k, v, "")
		}
	}
	return changes, nil
}

// atKey returns a filter that changes the value at a path of keys in a mapping, in place, and returns the mapping. It
// creates missing mappings on the way.
func atKey(change func(c *jinja.Call, m *value.Map, key string) error) func(c *jinja.Call) (any, error) {
	return func(c *jinja.Call) (any, error) {
		m, err := mapArgument(c, 0)
		if err != nil {
			return nil, err
		}
		path, err := c.Text(1)
		if err != nil {
			return nil, err
		}
		delimiter, err := c.Text(3)
		if err != nil {
			return nil, err
		}
		ordered, err := c.Bool(4)
		if err != nil {
			return nil, err
		}
		keys := []string{path}
		if delimiter != "" {
			keys = strings.Split(path, delimiter)
		}
		inner := m
		for _, k := range keys[:len(keys)-1] {
			next, ok := inner.Value(k).(*value.Map)
			if !ok {
				next = newDict(ordered)
				inner.Set(k, next)
			}
			inner = next
		}
		if err := c.Work(len(keys)); err != nil {
			return nil, err
		}
		return m, change(c, inner, keys[len(keys)-1])
	}
}

func newDict(ordered bool) *value.Map {
	if ordered {
		return value.NewMap()
	}
	return value.NewMap().Plain()
}

func setAt(c *jinja.Call, m *value.Map, key string) error {
	m.Set(key, c.Args[2])
	return nil
}

func appendAt(c *jinja.Call, m *value.Map, key string) error {
	if m.Value(key) == nil {
		m.Set(key, value.NewList())
	}
	l, ok := m.Value(key).(*value.List)
	if !ok {
		return cannot(m.Value(key), "append")
	}
	l.Append(c.Args[2])
	return nil
}

func extendAt(c *jinja.Call, m *value.Map, key string) error {
	if m.Value(key) == nil {
		m.Set(key, value.NewList())
	}
	l, ok := m.Value(key).(*value.List)
	if !ok {
		return cannot(m.Value(key), "extend")
	}
	items, err := c.Items(2)
	l.Items = append(l.Items, items...)
	return err
}

func updateAt(c *jinja.Call, m *value.Map, key string) error {
	if m.Value(key) == nil {
		ordered, err := c.Bool(4)
		if err != nil {
			return err
		}
		m.Set(key, newDict(ordered))
	}
	inner, ok := m.Value(key).(*value.Map)
	if !ok {
		return cannot(m.Value(key), "update")
	}
	update, err := c.GetAttr(inner, "update")
	if err == nil {
		_, err = c.Invoke(update, []any{c.Args[2]}, nil)
	}
	return err
}

func cannot(v any, what string) error {
	return &jinja.Failure{Class: "SaltInvocationError", Message: "The last key contains a " + describe(v) +
		", which cannot " + what + "."}
}

// traverse follows a path of keys and indexes. A key that looks like another type of YAML is tried
// as that type too.
func traverse(c *jinja.Call) (any, error) {
	var keys []any
	switch k := c.Args[1].(type) {
	case string:
		delimiter, err := c.Text(3)
		if err != nil {
			return nil, err
		}
		if delimiter == "" {
			return nil, valueError("empty separator")
		}
		for part := range strings.SplitSeq(k, delimiter) {
			keys = append(keys, part)
		}
	case int:
		keys = []any{k}
	default:
		var err error
		if keys, err = c.Items(1); err != nil {
			return nil, err
		}
	}
	v := c.Args[0]
	for _, key := range keys {
		next, found, err := step(c, v, key)
		if err != nil {
			return nil, err
		}
		if !found {
			return c.Args[2], nil
		}
		v = next
	}
	return v, nil
}

func step(c *jinja.Call, v, key any) (any, bool, error) {
	switch v := v.(type) {
	case *jinja.Undefined:
		_, err := v.PyStr()
		return nil, false, err
	case *value.List:
		return stepIntoList(v, key)
	case *value.Map:
		if item, found, err := v.GetKey(key); found || err != nil {
			return item, found, nil
		}
		if other, ok := asYAML(key); ok {
			item, found, _ := v.GetKey(other)
			return item, found, nil
		}
		return nil, false, nil
	}
	item, err := c.GetItem(v, key)
	if _, missing := item.(*jinja.Undefined); missing || err != nil {
		return nil, false, nil
	}
	if _, text := key.(string); text { // an attribute is not an item
		return nil, false, nil
	}
	return item, true, nil
}

func stepIntoList(l *value.List, key any) (any, bool, error) {
	index, isIndex := key.(int)
	if s, ok := key.(string); ok {
		if n, err := value.ParseInt(s, 10); err == nil {
			index, isIndex = n.(int)
		}
	}
	wanted := key
	if isIndex {
		wanted = index
	}
	for _, item := range l.Items {
		if m, ok := item.(*value.Map); ok {
			if v, found, err := m.GetKey(wanted); found && err == nil {
				return v, true, nil
			}
		}
	}
	if !isIndex {
		return nil, false, nil
	}
	v, err := value.At(l, index)
	return v, err == nil, nil
}

// asYAML returns the value of a key that is read as YAML. It returns false if that is a string, a collection or null.
// The text None is read as None.
func asYAML(key any) (any, bool) {
	text, ok := key.(string)
	if !ok || strings.ContainsAny(text, "\t\r\n") {
		return nil, false
	}
	if text == "None" {
		return nil, true
	}
	d, err := yaml.LoadString(text, "")
	if err != nil {
		return nil, false
	}
	switch d.Value.(type) {
	case string, *value.Map, *value.List, nil:
		return nil, false
	}
	return d.Value, true
}

// mysqlToDict parses a table that the mysql client has printed.
func mysqlToDict(c *jinja.Call) (any, error) {
	lines, err := c.Items(0)
	if err != nil {
		return nil, err
	}
	key, err := c.Text(1)
	if err != nil {
		return nil, err
	}
	table := value.NewMap().Plain()
	var headers []string
	for _, l := range lines {
		line, _ := l.(string)
		if line == "" || strings.HasPrefix(line, "+") {
			continue
		}
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = value.Strip(cells[i])
		}
		if len(headers) <= 1 {
			headers = cells
			continue
		}
		row := value.NewMap().Plain()
		for i := 1; i < len(headers)-1 && i < len(cells); i++ {
			v, err := number(cells[i])
			if err != nil {
				return nil, err
			}
			row.Set(headers[i], v)
		}
		name, ok := row.Get(key)
		if !ok {
			return nil, &jinja.Failure{Class: "KeyError", Message: value.Repr(key)}
		}
		if err := table.SetKey(name, row); err != nil {
			return nil, err
		}
	}
	return table, nil
}
