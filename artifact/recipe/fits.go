package recipe

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// apart reports templates that would be rendered to the same file.
func (p *parser) apart(top *yaml.Node) {
	templates := valueOf(top, "templates")
	if templates == nil {
		return
	}
	targets := map[string]bool{}
	for _, template := range templates.Content {
		target := valueOf(template, "target")
		if target == nil {
			continue
		}
		if targets[target.Value] {
			p.add(target, "another template has the target %s too", target.Value).WithHint(diag.Recipe, "keep one of them")
		}
		targets[target.Value] = true
	}
}

// fits reports settings that the builder does not read: keys of another builder, or any key without a builder.
// Otherwise the release would be built without them, silently.
func (p *parser) fits(top *yaml.Node) {
	builder, build := valueOf(top, "builder"), valueOf(top, "build")
	if build == nil || build.Kind != yaml.MappingNode {
		return
	}
	if builder == nil {
		p.add(build, "build is set, but the builder for it is not").WithHint(diag.Recipe, "write `builder: ...` with one "+
			"of "+strings.Join(running(), ", "))
		return
	}
	keys := buildKeys()
	for i := 0; i+1 < len(build.Content); i += 2 {
		key := build.Content[i]
		at := slices.IndexFunc(keys, func(k Key) bool { return k.Name == key.Value })
		if at < 0 || slices.Contains(keys[at].Builders, builder.Value) {
			continue
		}
		p.add(key, "build.%s is for the builder %s, and the builder is %s", key.Value,
			strings.Join(keys[at].Builders, " or "), builder.Value).
			WithHint(diag.Recipe, "take it out, or name that builder")
	}
}

// valueOf returns the value of a key of a mapping; nil if there is none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
