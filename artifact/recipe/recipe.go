// Package recipe parses corpus.yaml, the file with which a source tree configures how it is built, and a release how a
// host treats it.
//
// The file is written by people, so all its problems are reported at once with file:line:col, and the error for an
// unknown name suggests a similar one. One table, in schema.go, lists every key with its kind and its meaning; checks,
// the JSON Schema and the documentation are made from it.
package recipe

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Name is the file's name at the root of a tree.
const Name = "corpus.yaml"

// Recipe is the content of a corpus.yaml.
type Recipe struct {
	// Name is the name of the project; by default that of the tree's directory.
	Name string `yaml:"name"`
	// Version is a version, or "git" for the output of git describe.
	Version string `yaml:"version"`
	// Builder builds the release from the tree: tree, command, python, node or go.
	Builder string `yaml:"builder"`
	Build   Build  `yaml:"build"`
	// Prefix is the directory in which packages and images install the release; /opt/NAME by default.
	Prefix string `yaml:"prefix"`
	// Files are the paths of the tree that belong to the release; empty means all.
	Files []string `yaml:"files"`
	// LeaveOut are patterns of names, or of paths if they contain a slash, that do not belong to it.
	LeaveOut []string `yaml:"leave_out"`
	// Allow names files that look like secrets and are not.
	Allow []string `yaml:"allow"`
	// AllowSecrets names findings of the search for secrets that may be packed.
	AllowSecrets []AllowedSecret `yaml:"allow_secrets"`
	// Writable lists the paths of a release that belong to the project's user on a host, each a file or a
	// directory with all below it. Paths that are code, or have code below them, are left out of it (see Denied)
	// unless WritableCode is set; then "." is the whole release.
	Writable []string `yaml:"writable"`
	// WritableCode allows Writable to name code too. The project's user can then become root.
	WritableCode bool `yaml:"writable_code"`
	// Denied are the paths that the file declares writable and that are not in Writable, since they contain code.
	Denied []string `yaml:"-"`
	Hooks  Hooks    `yaml:"hooks"`
	// Units are the units of the release, in the order in which an agent restarts them: files of the tree, which
	// packages install, or names of units that are installed otherwise. Nil means the units that start through the
	// release's links.
	Units []string `yaml:"units"`
	// Reload are units that an agent reloads instead of restarting them.
	Reload []string `yaml:"reload"`
	// Health is the definition of a healthy release.
	Health Health `yaml:"-"`
	// Templates are configuration files that a host renders.
	Templates []Template `yaml:"templates"`
	Package   Package    `yaml:"package"`

	places map[string]diag.Pos
}

// At returns the position at which the file names a path, or only the file if it does not name it.
func (r Recipe) At(path string) diag.Pos {
	if pos, ok := r.places[path]; ok {
		return pos
	}
	return diag.Pos{File: Name}
}

// IsName reports whether a recipe may have this name.
func IsName(name string) bool { return regexp.MustCompile(namePattern).MatchString(name) }

// UnitFiles returns the units whose files are in a tree. A path with a directory always means a file of the tree; a
// bare name may be a unit that is installed otherwise.
func (r Recipe) UnitFiles(tree fs.FS) []string {
	return slices.DeleteFunc(slices.Clone(r.Units), func(unit string) bool {
		_, err := fs.Stat(tree, path.Clean(unit))
		return errors.Is(err, fs.ErrNotExist) && path.Base(unit) == unit
	})
}

// Own returns the paths of the source tree that belong to a release regardless of its builder: units, templates and
// scripts. Units that are not in the tree are left out.
func (r Recipe) Own(tree fs.FS) []string {
	names := r.UnitFiles(tree)
	for _, t := range r.Templates {
		names = append(names, t.Source)
	}
	for _, script := range []string{r.Package.PreInstall, r.Package.PostInstall,
		r.Package.PreRemove, r.Package.PostRemove} {
		if script != "" {
			names = append(names, script)
		}
	}
	for i, name := range names {
		names[i] = path.Clean(name)
	}
	return names
}

// Build holds the settings of builders.
type Build struct {
	// Command is a program and its arguments, for the builder command.
	Command []string `yaml:"command"`
	// Output is the directory in which the command leaves the release; "." is the tree.
	Output string `yaml:"output"`
	// Base is the system to build in, such as debian/bookworm; empty means this machine.
	Base string `yaml:"base"`
	// Needs are packages of the base that the build needs.
	Needs []string `yaml:"needs"`
	// Python is the interpreter of a virtualenv; python3 by default.
	Python string `yaml:"python"`
	// Requirements is a requirements file, with or without hashes.
	Requirements string `yaml:"requirements"`
	// Wheels is a directory of wheels, the only source to install from.
	Wheels string `yaml:"wheels"`
	// Install are source trees, relative paths or URLs, that pip installs.
	Install []string `yaml:"install"`
	// Main are the packages that the builder go builds; ./... by default.
	Main []string `yaml:"main"`
	// Script is the npm script that the builder node runs after npm ci, such as build; none by default.
	Script string `yaml:"script"`
}

// Hooks are scripts of the source tree that an agent runs while it deploys, in order.
type Hooks struct {
	PreArchive  []string `yaml:"pre_archive"`
	PostArchive []string `yaml:"post_archive"`
	PreRelease  []string `yaml:"pre_release"`
	PostRelease []string `yaml:"post_release"`
}

// Stages returns the scripts by the agent's names of the stages.
func (h Hooks) Stages() map[string][]string {
	return map[string][]string{"pre-archive": h.PreArchive, "post-archive": h.PostArchive, "pre-release": h.PreRelease,
		"post-release": h.PostRelease}
}

// All returns the scripts of all stages.
func (h Hooks) All() []string {
	return slices.Concat(h.PreArchive, h.PostArchive, h.PreRelease, h.PostRelease)
}

// AllowedSecret is a file, or a directory with everything below it, that looks like a secret and may be packed.
type AllowedSecret struct {
	Path   string `yaml:"path"`
	Rule   string `yaml:"rule"`   // rule whose findings may be packed; all by default
	Reason string `yaml:"reason"` // for people who read the file
}

// Template is a configuration file that a host renders from its pillar and grains.
type Template struct {
	Source string `yaml:"source"` // in the release
	Target string `yaml:"target"` // on the host
	Mode   string `yaml:"mode"`   // octal; 0644 by default
	User   string `yaml:"user"`
	Group  string `yaml:"group"`
	// Check is a command that gets the rendered file's name and fails if the file is wrong.
	Check string `yaml:"check"`
	// HostOnly excludes the file from packages and images: only an agent renders it.
	HostOnly bool `yaml:"host_only"`
}

// Package is the metadata of packages.
type Package struct {
	Description string   `yaml:"description"`
	Maintainer  string   `yaml:"maintainer"`
	License     string   `yaml:"license"`
	Homepage    string   `yaml:"homepage"`
	Depends     []string `yaml:"depends"`
	PreInstall  string   `yaml:"pre_install"` // scripts of the tree
	PostInstall string   `yaml:"post_install"`
	PreRemove   string   `yaml:"pre_remove"`
	PostRemove  string   `yaml:"post_remove"`
	Command     []string `yaml:"command"` // of an image
	// Base is the base of an image: a directory, an archive or an OCI image layout.
	Base string `yaml:"base"`
	// Pillar is the data with which templates are rendered for packages and images.
	Pillar map[string]any `yaml:"pillar"`
}

// procedureDir is the directory of a project's own procedures.
const procedureDir = ".salt"

// Load parses the recipe of a release like a host: unknown keys are ignored, since the builder of the release may be a
// newer version. A tree without a recipe gets the default, in which nothing is writable.
func Load(tree fs.FS) (Recipe, error) { return load(tree, true) }

// LoadStrict parses the recipe of a tree for its author: unknown keys, paths that are not in the tree, and files that
// no agent will read (see Unread) are errors. Its error has all mistakes.
func LoadStrict(tree fs.FS) (Recipe, error) { return load(tree, false) }

func load(tree fs.FS, lenient bool) (Recipe, error) {
	data, err := fs.ReadFile(tree, Name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && lenient:
		return Recipe{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return Recipe{}, Recipe{}.Unread(tree)
	case err != nil:
		return Recipe{}, err
	}
	p := parser{file: Name, lenient: lenient}
	r, err := p.parse(data)
	switch {
	case lenient && err != nil:
		return Recipe{}, err
	case lenient:
		return r, nil
	}
	p.problems = nil
	p.problems.AddError(diag.Pos{File: Name}, err)
	p.problems.AddError(diag.Pos{File: Name}, r.missing(tree))
	p.problems.AddError(diag.Pos{File: Name}, r.Unread(tree))
	return r, p.problems.Err()
}

// Said returns the project and the version that a recipe names; "" if it names none, or uses git's version.
func Said(data []byte) (name, version string) {
	var said struct{ Name, Version string }
	if yaml.Unmarshal(data, &said) != nil {
		return "", ""
	}
	if said.Version == "git" {
		said.Version = ""
	}
	return said.Name, said.Version
}

// parse parses a recipe. Its error is a diag.List with every problem; the recipe has the parts that could be parsed
// nevertheless.
func (p *parser) parse(data []byte) (Recipe, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return Recipe{}, NotYAML(p.file, err)
	}
	if len(root.Content) == 0 {
		return Recipe{}, nil
	}
	p.places = map[string]diag.Pos{}
	p.section(root.Content[0], Keys())
	if !p.lenient {
		p.fits(root.Content[0])
		p.apart(root.Content[0])
	}
	r := Recipe{Health: p.readHealth, places: p.places}
	if err := root.Decode(&r); err != nil && len(p.problems) == 0 { // a problem has a better position
		return Recipe{}, diag.At(diag.Pos{File: p.file}, "%v", err)
	}
	r.Writable, r.Files = cleaned(r.Writable), cleaned(r.Files)
	if !p.lenient {
		p.guarded(root.Content[0], r)
	}
	r.protect()
	return r, p.problems.Err()
}

// NotYAML returns an error of the YAML parser with its position in the file, and a hint.
func NotYAML(file string, err error) *diag.Diagnostic {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return diag.At(diag.Pos{File: file}, "not YAML: %v", err)
	}
	hint := "look at this line and the one above it: indentation, quotes, brackets"
	switch {
	case strings.Contains(at.Message, "tab character"), strings.Contains(at.Message, "cannot start any token"):
		hint = "indent with spaces, not with tabs; quote a value that begins with one of @ ` % or a tab"
	case strings.Contains(at.Message, "already defined"):
		hint = "keep one of them"
	}
	return diag.At(diag.Pos{File: file, Line: at.Mark.Line, Col: at.Mark.Column}, "not YAML: %s", at.Message).
		WithHint(diag.Recipe, hint)
}

// cleaned returns paths in their shortest form, sorted.
func cleaned(paths []string) []string {
	if paths == nil {
		return nil
	}
	list := make([]string, 0, len(paths))
	for _, p := range paths {
		list = append(list, path.Clean(p))
	}
	slices.Sort(list)
	return slices.Compact(list)
}
