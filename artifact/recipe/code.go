package recipe

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// WritableCodeKey is the key that allows a project's user to change files that the agent runs as root.
const WritableCodeKey = "writable_code"

// CodeDirs returns the top-level names of a release whose content the agent reads or runs as root, regardless of the
// recipe.
func CodeDirs() []string {
	return []string{Name, ".corpus", procedureDir, "grains", "hooks", "pillar", "salt", "states"}
}

// Code lists the paths of a release that the agent reads or runs as root: procedures, hooks, SLS files, pillar, grains,
// units, the sources of templates, the scripts of probes and the recipe itself. Each is a file, or a directory with all
// below it.
func (r Recipe) Code() []string {
	code := append(CodeDirs(), r.Hooks.All()...)
	code = append(code, r.Units...)
	for _, t := range r.Templates {
		code = append(code, t.Source)
	}
	for _, p := range r.Health.Probes {
		if p.Kind == ProbeScript && !filepath.IsAbs(p.Target) {
			code = append(code, p.Target)
		}
	}
	return cleaned(code)
}

// IsCode reports whether a path is code, is below code, or has code below it.
func IsCode(code []string, name string) bool {
	return slices.ContainsFunc(code, func(c string) bool {
		return name == "." || within(name, c) || within(c, name)
	})
}

// Within reports whether a path is one of some paths, or below one. "." is the whole tree.
func Within(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return p == "." || within(name, p) })
}

// within reports whether a path is another one or below it.
func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// protect removes from the writable paths those that would allow the project's user to change code. It also applies to
// an earlier default, writable: [.].
func (r *Recipe) protect() {
	if r.WritableCode {
		return
	}
	code := r.Code()
	r.Denied = slices.DeleteFunc(slices.Clone(r.Writable), func(name string) bool { return !IsCode(code, name) })
	r.Writable = slices.DeleteFunc(r.Writable, func(name string) bool { return IsCode(code, name) })
}

// guarded reports writable paths that contain code to the author of a recipe.
func (p *parser) guarded(top *yaml.Node, r Recipe) {
	writable := valueOf(top, "writable")
	if writable == nil || r.WritableCode {
		return
	}
	code := r.Code()
	for _, item := range writable.Content {
		if name := path.Clean(item.Value); IsCode(code, name) {
			p.add(item,
				"writable: %s is, or holds, what the agent reads or runs as root, so the project's user could become root", name).
				WithHint(diag.Recipe, "name the directories that the service writes to, such as var; `"+WritableCodeKey+
					": true` allows it anyway")
		}
	}
}
