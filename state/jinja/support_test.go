package jinja_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/jinja/salt"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// files returns a tree of templates, by path.
func files(tree map[string]string) jinja.Tree {
	return jinja.Tree{Read: func(_ context.Context, path string) (string, string, error) {
		text, ok := tree[path]
		if !ok {
			return "", "", fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		return text, "/srv/" + path, nil
	}}
}

// options returns the options with which SLS files are rendered.
func options(tree map[string]string) jinja.Options {
	o := jinja.Options{Filters: salt.Filters(), Tests: salt.Tests(), Globals: value.NewMap()}
	for name, v := range salt.Globals() {
		o.Globals.Set(name, v)
	}
	if tree != nil {
		o.Loader = files(tree)
	}
	return o
}

// render renders a text with variables and returns its output.
func render(o jinja.Options, text string, vars *value.Map) (string, error) {
	t, err := jinja.New(o).Parse(jinja.Source{Name: "t.sls", File: "/srv/t.sls", Text: text})
	if err != nil {
		return "", err
	}
	out, err := t.Render(context.Background(), vars)
	if err != nil {
		return "", err
	}
	return out.Text, nil
}

// modules is the variable salt of templates: functions by names such as test.echo.
type modules map[string]func(c *jinja.Call) (any, error)

func (modules) PyType() string    { return "LazyLoader" }
func (modules) PyRepr() string    { return "<salt>" }
func (modules) PyTruth() bool     { return true }
func (m modules) Names() []string { return slices.Sorted(maps.Keys(m)) }

func (m modules) GetItem(_ context.Context, key any) (any, bool, error) {
	fn, ok := m[value.Str(key)]
	if !ok {
		return nil, false, nil
	}
	return jinja.Function(value.Str(key), fn), true, nil
}

func (m modules) GetAttr(_ context.Context, name string) (any, bool, error) {
	for key := range m {
		if strings.HasPrefix(key, name+".") {
			return family{m, name}, true, nil
		}
	}
	return nil, false, nil
}

// family is a module, as in salt.test.
type family struct {
	modules
	name string
}

func (f family) GetAttr(ctx context.Context, name string) (any, bool, error) {
	return f.GetItem(ctx, f.name+"."+name)
}

// host returns the variables of templates on an example host.
func host() *value.Map {
	grains := value.NewMap(
		"id", "web-01", "os", "Ubuntu", "os_family", "Debian", "osmajorrelease", 22, "mem_total", 2000,
		"ip4_interfaces", value.NewMap("eth0", value.NewList("10.0.0.1")),
	)
	pillar := value.NewMap(
		"users", value.NewMap(
			"zed", value.NewMap("uid", 3), "bob", value.NewMap("uid", 1, "shell", "/bin/sh"), "amy", value.NewMap("uid", 2)),
		"apache", value.NewMap("o", value.NewMap("a", 9)),
		"nginx", value.NewMap("lookup", value.NewMap("extra", "E")),
	)
	return value.NewMap("grains", grains, "pillar", pillar, "salt", functions(grains, pillar), "saltenv", "base")
}

// functions returns some of Salt's functions for templates.
func functions(grains, pillar *value.Map) modules {
	get := func(from *value.Map) func(c *jinja.Call) (any, error) {
		return func(c *jinja.Call) (any, error) {
			if v, ok := value.Lookup(from, value.Str(c.Args[0]), ":"); ok {
				return v, nil
			}
			if len(c.Args) > 1 {
				return c.Args[1], nil
			}
			v, ok := c.Kwargs.Get("default")
			if !ok {
				return "", nil
			}
			return v, nil
		}
	}
	return modules{
		"cmd.run": func(c *jinja.Call) (any, error) {
			text, _ := strings.CutPrefix(value.Str(c.Args[0]), "echo ")
			return text, nil
		},
		"grains.filter_by": func(c *jinja.Call) (any, error) {
			choices := c.Args[0].(*value.Map)
			chosen, _ := choices.Get(value.Str(grains.Value("os_family")))
			over, _ := c.Kwargs.Get("merge")
			merged := chosen.(*value.Map).Clone()
			if m, ok := over.(*value.Map); ok {
				value.Update(merged, m, true, false)
			}
			return merged, nil
		},
		"grains.get": get(grains),
		"pillar.get": get(pillar),
		"test.echo": func(c *jinja.Call) (any, error) {
			text := value.Str(c.Args[0])
			if upper, _ := c.Kwargs.Get("upper"); value.Truth(upper) {
				text = strings.ToUpper(text)
			}
			return text, nil
		},
	}
}

// jinjaError returns the *jinja.Error in the chain of err.
func jinjaError(t *testing.T, err error) *jinja.Error {
	t.Helper()
	var e *jinja.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error has no position: %v", err)
	}
	return e
}
