package config

import (
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// verify checks a configuration file against the table of keys.
func verify(data []byte, file string) diag.List {
	c := checker{file: file}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return diag.Config.Of(diag.List{recipe.NotYAML(file, err)})
	}
	if len(root.Content) > 0 {
		c.mapping("", root.Content[0])
	}
	return c.problems
}

type checker struct {
	file     string
	problems diag.List
}

func (c *checker) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: c.file, Line: n.Line, Col: n.Column}
}

// mapping checks the keys below a dotted prefix.
func (c *checker) mapping(prefix string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		c.problems.Add(c.pos(n), "%sa mapping of settings was expected", labelled(prefix))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		name := prefix + key.Value
		k, known := find(name)
		switch {
		case repeated(n.Content[:i], key.Value):
			c.problems.Add(c.pos(key), "%s is given twice", name).WithHint(diag.Config, "keep one of them")
		case known:
			c.value(k, v)
		case section(name):
			c.mapping(name+".", v)
		default:
			c.unknown(name, key)
		}
	}
}

// repeated reports whether a mapping has a key among its first keys and values.
func repeated(content []*yaml.Node, key string) bool {
	for i := 0; i < len(content); i += 2 {
		if content[i].Value == key {
			return true
		}
	}
	return false
}

func labelled(prefix string) string {
	if prefix == "" {
		return ""
	}
	return strings.TrimSuffix(prefix, ".") + ": "
}

func (c *checker) unknown(name string, key *yaml.Node) {
	hint := suggestion(name)
	if hint == "" {
		hint = "docs/configuration.md lists the settings"
	}
	c.problems.Add(c.pos(key), "unknown setting %q", name).WithHint(diag.Config, hint)
}

// suggestion suggests the setting or section that was probably meant: one with a similar name, or one with the same
// name in a section.
func suggestion(name string) string {
	var names, within []string
	own := name[strings.LastIndexByte(name, '.')+1:]
	for _, k := range Keys() {
		names = append(names, k.Name)
		for prefix := k.Name; strings.Contains(prefix, "."); {
			prefix = prefix[:strings.LastIndexByte(prefix, '.')]
			names = append(names, prefix)
		}
		if strings.HasSuffix(k.Name, "."+own) {
			within = append(within, k.Name)
		}
	}
	if len(within) > 0 {
		return "did you mean " + strings.Join(within, " or ") + "?"
	}
	return diag.DidYouMean(name, names)
}

func (c *checker) value(k Key, v *yaml.Node) {
	switch k.Kind {
	case Texts:
		c.texts(k, v)
		return
	case Pillars:
		c.pillarSources(k, v)
		return
	case Probes:
		_, problems := recipe.ParseProbes(v, c.file)
		c.problems = append(c.problems, diag.Config.Of(problems)...)
		return
	}
	if v.Kind != yaml.ScalarNode {
		c.problems.Add(c.pos(v), "%s: a %s was expected", k.Name, k.Kind)
		return
	}
	if problem := k.check(v.Value); problem != "" {
		c.problems.Add(c.pos(v), "%s", problem)
	}
}

func (c *checker) texts(k Key, v *yaml.Node) {
	if v.Kind != yaml.SequenceNode {
		c.problems.Add(c.pos(v), "%s: a %s was expected", k.Name, k.Kind).
			WithHint(diag.Config, fmt.Sprintf("write %s: [one, two]",
				k.Name))
		return
	}
	for _, item := range v.Content {
		if item.Kind != yaml.ScalarNode {
			c.problems.Add(c.pos(item), "%s: a string was expected", k.Name)
			continue
		}
		if problem := cmp.Or(k.checkName(item.Value), k.checkChoice(item.Value)); problem != "" {
			c.problems.Add(c.pos(item), "%s", problem)
		}
	}
}
