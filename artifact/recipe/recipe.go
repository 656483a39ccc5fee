// Package recipe reads corpus.yaml, the file in which a source tree says how it wants to be built
// and a release says how it wants to be treated on a host.
//
// The file is a person's, so its problems are reported all at once with file:line:col, and a name
// nobody knows is an error with the name that was probably meant.
package recipe

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Name is the file's name at the root of a tree.
const Name = "corpus.yaml"

// Recipe is what a corpus.yaml says.
type Recipe struct {
	// Writable lists the paths of a release that stay writable on a host, each a file or a
	// directory with all below it. "." is the whole release.
	Writable []string
	// Health says when the release counts as healthy.
	Health Health
}

// procedureDir is where a project keeps procedures of its own; their old convention is to change
// the tree in place.
const procedureDir = ".salt"

// Load reads the recipe of a tree. A tree without one gets the default: nothing is writable, or
// everything in a project with .salt/.
func Load(tree fs.FS) (Recipe, error) {
	data, err := fs.ReadFile(tree, Name)
	if errors.Is(err, fs.ErrNotExist) {
		return fallback(tree), nil
	}
	if err != nil {
		return Recipe{}, err
	}
	r, err := Parse(data, Name)
	if err != nil {
		return Recipe{}, err
	}
	if r.Writable == nil {
		r.Writable = fallback(tree).Writable
	}
	return r, nil
}

func fallback(tree fs.FS) Recipe {
	if info, err := fs.Stat(tree, procedureDir); err == nil && info.IsDir() {
		return Recipe{Writable: []string{"."}}
	}
	return Recipe{}
}

// keys are the names a recipe may hold.
func keys() []string { return []string{"writable", "health"} }

// Parse reads a recipe. Its error is a diag.List with every problem.
func Parse(data []byte, file string) (Recipe, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return Recipe{}, diag.At(diag.Pos{File: file}, "not YAML: %v", err)
	}
	p := parser{file: file}
	if len(root.Content) > 0 {
		p.mapping(root.Content[0])
	}
	return p.recipe, p.problems.Err()
}

type parser struct {
	file     string
	recipe   Recipe
	problems diag.List
}

func (p *parser) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: p.file, Line: n.Line, Col: n.Column}
}

func (p *parser) mapping(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.problems.Add(p.pos(n), "a mapping was expected").WithHint("write `writable: [path]` or remove the file")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		p.entry(n.Content[i], n.Content[i+1])
	}
}

func (p *parser) entry(key, value *yaml.Node) {
	switch key.Value {
	case "writable":
		p.recipe.Writable = p.paths(value)
	case "health":
		p.recipe.Health = p.health(value)
	default:
		p.unknown(key, keys())
	}
}

func (p *parser) paths(n *yaml.Node) []string {
	list := []string{}
	if n.Kind != yaml.SequenceNode {
		p.problems.Add(p.pos(n), "a list of paths was expected")
		return list
	}
	for _, item := range n.Content {
		clean := path.Clean(item.Value)
		if item.Kind != yaml.ScalarNode || !fs.ValidPath(clean) {
			p.problems.Add(p.pos(item), "%q is not a path inside the release", item.Value).WithHint("write it relative to the top of the release, without ..")
			continue
		}
		list = append(list, clean)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
