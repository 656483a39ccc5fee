package statetest

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Load reads cases from the YAML files that a pattern names. A file is a list of cases:
//
//   - case: a file is made
//     managed: {name: /etc/motd, contents: hello}      # the call: function and arguments
//     tree: {/etc/: {mode: '0755'}, /etc/l: {link: motd}}
//     dry: {result: null, changes: {newfile: /etc/motd}}
//     first: {result: true, changes: {diff: New file}}
//     second: {result: true, changes: {}}
//     after: {/etc/motd: "hello\n", /etc/old: null}     # null: nothing is there
//
// and optionally before (calls that come first), always, user and secrets, which set the fields of Case, and why, a
// remark. In trees, a text is the content of a file, a name that ends in a slash is a directory, and the long form is
// {content: ..., mode: ..., user: ..., group: ..., link: ..., modified: SECONDS}.
func Load(t *testing.T, pattern string) []Case {
	t.Helper()
	files, err := walk.Glob(pattern)
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("no file of cases matches %s", pattern)
	}
	var cases []Case
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		list, err := parse(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range list {
			list[i].Name = strings.TrimSuffix(filepath.Base(file), ".yaml") + "/" + list[i].Name
		}
		cases = append(cases, list...)
	}
	return cases
}

func parse(data []byte) ([]Case, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	v, err := plain(doc.Content[0])
	if err != nil {
		return nil, err
	}
	list, ok := v.(*value.List)
	if !ok {
		return nil, fmt.Errorf("a list of cases was expected")
	}
	var cases []Case
	for i, item := range list.Items {
		c, err := caseOf(item)
		if err != nil {
			return nil, fmt.Errorf("case %d, %s: %w", i+1, c.Name, err)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func caseOf(v any) (c Case, err error) {
	m, ok := v.(*value.Map)
	if !ok {
		return c, fmt.Errorf("a mapping was expected, not a %s", value.TypeName(v))
	}
	for key, v := range m.All() {
		switch key {
		case "why": // a remark for the reader
		case "case":
			c.Name = value.Str(v)
		case "tree":
			c.Tree, err = treeOf(v)
		case "after":
			c.After, err = treeOf(v)
		case "before":
			c.Before, err = callsOf(v)
		case "dry":
			c.Dry, err = wantOf(v)
		case "first":
			c.First, err = wantOf(v)
		case "second":
			c.Second, err = wantOf(v)
		case "always":
			c.Always = value.Truth(v)
		case "user":
			c.User = value.Truth(v)
		case "secrets":
			c.Secrets = texts(v)
		default:
			c.Function = value.Str(key)
			c.Arguments, ok = v.(*value.Map)
			if !ok {
				err = fmt.Errorf("the arguments of %s are not a mapping", c.Function)
			}
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

func callsOf(v any) ([]Call, error) {
	var calls []Call
	list, _ := v.(*value.List)
	if list == nil {
		return nil, fmt.Errorf("before is a list of calls")
	}
	for _, item := range list.Items {
		c, err := caseOf(item)
		if err != nil {
			return nil, err
		}
		calls = append(calls, Call{c.Function, c.Arguments})
	}
	return calls, nil
}

func wantOf(v any) (*Want, error) {
	m, ok := v.(*value.Map)
	if !ok {
		return nil, fmt.Errorf("an expected result is a mapping")
	}
	if !m.Has("result") {
		return nil, fmt.Errorf("an expected result needs result: true, false or null")
	}
	w := &Want{}
	for key, v := range m.All() {
		switch key {
		case "result":
			w.Result = v
		case "changes":
			w.Changes, _ = v.(*value.Map)
		case "comment":
			w.Comment = value.Str(v)
		case "warning":
			w.Warning = value.Str(v)
		case "hint":
			w.Hint = value.Str(v)
		default:
			return nil, fmt.Errorf("an expected result has no field %s", value.Str(key))
		}
	}
	return w, nil
}

func treeOf(v any) (Tree, error) {
	m, ok := v.(*value.Map)
	if !ok {
		return nil, fmt.Errorf("a tree is a mapping")
	}
	tree := Tree{}
	for key, v := range m.All() {
		name := value.Str(key)
		e := Entry{}
		if strings.HasSuffix(name, "/") {
			e.Kind = "dir"
		}
		if err := e.read(v); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if name != "/" {
			name = strings.TrimSuffix(name, "/")
		}
		tree[name] = e
	}
	return tree, nil
}

func (e *Entry) read(v any) error {
	switch v := v.(type) {
	case nil:
		e.Absent = true
	case string:
		*e = File(v)
	case *value.Map:
		return e.readMap(v)
	default:
		return fmt.Errorf("%s describes no file", value.Repr(v))
	}
	return nil
}

func (e *Entry) readMap(m *value.Map) error {
	for key, v := range m.All() {
		text := value.Str(v)
		switch key {
		case "content":
			e.Kind, e.Content = "file", &text
		case "link":
			e.Kind, e.Target = "link", text
		case "mode":
			e.Mode = text
		case "user":
			e.User = text
		case "group":
			e.Group = text
		case "modified":
			seconds, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return err
			}
			e.Modified = time.Unix(seconds, 0)
		default:
			return fmt.Errorf("an entry has no %s", value.Str(key))
		}
	}
	return nil
}

func texts(v any) []string {
	list, _ := v.(*value.List)
	var out []string
	if list != nil {
		for _, item := range list.Items {
			out = append(out, value.Str(item))
		}
	}
	return out
}

// plain converts a YAML document to values.
func plain(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := value.NewMap()
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, err := plain(n.Content[i])
			if err != nil {
				return nil, err
			}
			v, err := plain(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			if err := m.SetKey(key, v); err != nil {
				return nil, err
			}
		}
		return m, nil
	case yaml.SequenceNode:
		l := value.NewList()
		for _, c := range n.Content {
			v, err := plain(c)
			if err != nil {
				return nil, err
			}
			l.Append(v)
		}
		return l, nil
	case yaml.AliasNode:
		return plain(n.Alias)
	}
	return scalar(n)
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return n.Value == "true", nil
	case "!!int":
		i, ok := new(big.Int).SetString(n.Value, 0)
		if !ok || !i.IsInt64() {
			return nil, fmt.Errorf("line %d: %s is not a number for a test", n.Line, n.Value)
		}
		return int(i.Int64()), nil
	case "!!float":
		return strconv.ParseFloat(n.Value, 64)
	}
	return n.Value, nil
}
