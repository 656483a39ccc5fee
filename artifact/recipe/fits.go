package recipe

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// apart finds templates that would be rendered to the same file.
func (p *parser) apart(top *yaml.Node) {
	targets := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		if top.Content[i].Value != "templates" {
			continue
		}
		for _, template := range top.Content[i+1].Content {
			for j := 0; j+1 < len(template.Content); j += 2 {
				key, value := template.Content[j], template.Content[j+1]
				if key.Value == "target" && targets[value.Value] {
					p.add(value, "another template has the target %s too", value.Value).WithHint("keep one of them")
				}
				targets[value.Value] = targets[value.Value] || key.Value == "target"
			}
		}
	}
}

// fits finds what is said to a builder that does not hear it: keys of another one, or any of them where
// none is named. The release would be made without it, and nobody would know.
func (p *parser) fits(top *yaml.Node) {
	var builder, build *yaml.Node
	for i := 0; i+1 < len(top.Content); i += 2 {
		switch top.Content[i].Value {
		case "builder":
			builder = top.Content[i+1]
		case "build":
			build = top.Content[i+1]
		}
	}
	if build == nil || build.Kind != yaml.MappingNode {
		return
	}
	if builder == nil {
		p.add(build, "build is given, and no builder that it is for").WithHint("write `builder: ...` with one of " + strings.Join(running(), ", "))
		return
	}
	for i := 0; i+1 < len(build.Content); i += 2 {
		key := build.Content[i]
		at := slices.IndexFunc(buildKeys(), func(k Key) bool { return k.Name == key.Value })
		if at < 0 || slices.Contains(buildKeys()[at].Builders, builder.Value) {
			continue
		}
		p.add(key, "build.%s is for the builder %s, and the builder is %s", key.Value, strings.Join(buildKeys()[at].Builders, " or "), builder.Value).
			WithHint("take it out, or name that builder")
	}
}
