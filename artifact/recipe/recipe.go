// Package recipe reads corpus.yaml, the file in which a source tree says how it wants to be built
// and a release says how it wants to be treated on a host.
//
// The file is a person's, so its problems are reported all at once with file:line:col, and an
// unknown name is an error with the name that was probably meant. One table, in schema.go, lists every
// key with its kind and its meaning; checks, the JSON Schema and the documentation are made from it.
package recipe

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Name is the file's name at the root of a tree.
const Name = "corpus.yaml"

// Recipe is what a corpus.yaml says.
type Recipe struct {
	// Name is the project's; that of the tree's directory by default.
	Name string `yaml:"name"`
	// Version is a version, or "git" for what git describes the tree as.
	Version string `yaml:"version"`
	// Builder makes the release of the tree: tree, command, python, node or go.
	Builder string `yaml:"builder"`
	Build   Build  `yaml:"build"`
	// Prefix is where packages and images install the release; /opt/NAME by default.
	Prefix string `yaml:"prefix"`
	// Files are the paths of the tree that belong to the release; empty means all.
	Files []string `yaml:"files"`
	// LeaveOut are patterns of names, or of paths when they hold a slash, that do not.
	LeaveOut []string `yaml:"leave_out"`
	// Allow names files that look like secrets and are none.
	Allow []string `yaml:"allow"`
	// AllowSecrets names findings of the search for secrets that may be packed.
	AllowSecrets []AllowedSecret `yaml:"allow_secrets"`
	// Writable lists the paths of a release that belong to the project's user on a host, each a file or a
	// directory with all below it. Paths that are code, or have code below them, are left out of it (see Denied)
	// unless WritableCode is set; then "." is the whole release.
	Writable []string `yaml:"writable"`
	// WritableCode lets Writable name code too. The project's user can then become root.
	WritableCode bool `yaml:"writable_code"`
	// Denied are the paths that the file calls writable and that Writable does not name, since they hold code.
	Denied []string `yaml:"-"`
	Hooks  Hooks    `yaml:"hooks"`
	// Units are the units of the release, in the order in which an agent restarts them: files of the
	// tree, which packages install, or names of units that something else installs. Nil means those that
	// start through the release's links.
	Units []string `yaml:"units"`
	// Reload are units that an agent reloads and does not restart.
	Reload []string `yaml:"reload"`
	// Health says when the release counts as healthy.
	Health Health `yaml:"-"`
	// Templates are configuration files that a host renders.
	Templates []Template `yaml:"templates"`
	Package   Package    `yaml:"package"`

	places map[string]diag.Pos
}

// At is where the file names a path; the file alone where it does not.
func (r Recipe) At(path string) diag.Pos {
	if pos, ok := r.places[path]; ok {
		return pos
	}
	return diag.Pos{File: Name}
}

// IsName reports whether a recipe may have a name.
func IsName(name string) bool { return regexp.MustCompile(namePattern).MatchString(name) }

// UnitFiles are the units whose files are in a tree. A path with a directory always means a file of the
// tree; a bare name may be a unit that something else installs.
func (r Recipe) UnitFiles(tree fs.FS) []string {
	return slices.DeleteFunc(slices.Clone(r.Units), func(unit string) bool {
		_, err := fs.Stat(tree, path.Clean(unit))
		return errors.Is(err, fs.ErrNotExist) && path.Base(unit) == unit
	})
}

// Own are the paths of the source tree that belong to a release whatever its builder makes: units,
// templates and scripts. Units that are not in the tree are not among them.
func (r Recipe) Own(tree fs.FS) []string {
	names := r.UnitFiles(tree)
	for _, t := range r.Templates {
		names = append(names, t.Source)
	}
	for _, script := range []string{r.Package.PreInstall, r.Package.PostInstall, r.Package.PreRemove, r.Package.PostRemove} {
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
	// Output is the directory that the command leaves the release in; "." is the tree.
	Output string `yaml:"output"`
	// Base is the system to build in, such as debian/bookworm; empty means this machine.
	Base string `yaml:"base"`
	// Needs are packages of the base that the build takes.
	Needs []string `yaml:"needs"`
	// Python is the interpreter of a virtualenv; python3 by default.
	Python string `yaml:"python"`
	// Requirements is a file of them, with hashes or without.
	Requirements string `yaml:"requirements"`
	// Wheels is a directory of wheels to install from, and from nowhere else.
	Wheels string `yaml:"wheels"`
	// Install are source trees, relative paths or URLs, that pip installs.
	Install []string `yaml:"install"`
	// Main are the packages that the builder go builds; ./... by default.
	Main []string `yaml:"main"`
	// Script is what the builder node runs after npm ci, such as build; none by default.
	Script string `yaml:"script"`
}

// Hooks are scripts of the source tree that an agent runs while it deploys, in their order.
type Hooks struct {
	PreArchive  []string `yaml:"pre_archive"`
	PostArchive []string `yaml:"post_archive"`
	PreRelease  []string `yaml:"pre_release"`
	PostRelease []string `yaml:"post_release"`
}

// Stages are the scripts by the names under which agents know the stages.
func (h Hooks) Stages() map[string][]string {
	return map[string][]string{"pre-archive": h.PreArchive, "post-archive": h.PostArchive, "pre-release": h.PreRelease, "post-release": h.PostRelease}
}

// All are the scripts of all stages.
func (h Hooks) All() []string {
	return slices.Concat(h.PreArchive, h.PostArchive, h.PreRelease, h.PostRelease)
}

// AllowedSecret is a file, or a directory with all below it, that looks like a secret and may be packed.
type AllowedSecret struct {
	Path   string `yaml:"path"`
	Rule   string `yaml:"rule"`   // whose findings are meant; all by default
	Reason string `yaml:"reason"` // for people who read the file
}

// Template is a configuration file that a host renders from its pillar and grains.
type Template struct {
	Source string `yaml:"source"` // in the release
	Target string `yaml:"target"` // on the host
	Mode   string `yaml:"mode"`   // octal; 0644 by default
	User   string `yaml:"user"`
	Group  string `yaml:"group"`
	// Check is a command that is given the rendered file's name and refuses it by failing.
	Check string `yaml:"check"`
	// HostOnly leaves the file out of packages and images: only an agent renders it.
	HostOnly bool `yaml:"host_only"`
}

// Package is what packages say of themselves.
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
	// Base is what an image is put on: a directory, an archive or an OCI image layout.
	Base string `yaml:"base"`
	// Pillar is what templates are rendered with for packages and images.
	Pillar map[string]any `yaml:"pillar"`
}

// procedureDir is where a project keeps procedures of its own.
const procedureDir = ".salt"

// Load reads the recipe of a release as a host does: keys that this version does not know are passed
// over, since who built the release may have a newer one. A tree without a recipe gets the default:
// nothing in it is writable.
func Load(tree fs.FS) (Recipe, error) { return load(tree, true) }

// LoadStrict reads the recipe of a tree as its author wants it read: an unknown key is an error.
func LoadStrict(tree fs.FS) (Recipe, error) { return load(tree, false) }

func load(tree fs.FS, lenient bool) (Recipe, error) {
	data, err := fs.ReadFile(tree, Name)
	if errors.Is(err, fs.ErrNotExist) {
		return Recipe{}, nil
	}
	if err != nil {
		return Recipe{}, err
	}
	return parse(data, parser{file: Name, lenient: lenient})
}

// Said reads which project and which version a recipe names; "" where it names none, or takes git's version.
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

// parse reads a recipe. Its error is a diag.List with every problem.
func parse(data []byte, p parser) (Recipe, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return Recipe{}, notYAML(p.file, err)
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
	if err := p.problems.Err(); err != nil {
		return Recipe{}, err
	}
	r := Recipe{Health: p.readHealth, places: p.places}
	if err := root.Decode(&r); err != nil {
		return Recipe{}, diag.At(diag.Pos{File: p.file}, "%v", err)
	}
	r.Writable, r.Files = cleaned(r.Writable), cleaned(r.Files)
	if !p.lenient {
		p.guarded(root.Content[0], r)
	}
	r.protect()
	return r, p.problems.Err()
}

// notYAML places an error of the parser.
func notYAML(file string, err error) error {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return diag.At(diag.Pos{File: file}, "not YAML: %v", err)
	}
	return diag.At(diag.Pos{File: file, Line: at.Mark.Line, Col: at.Mark.Column}, "not YAML: %s", at.Message).WithHint("look at this line and the one above it: indentation, quotes, brackets")
}

// cleaned are paths in their shortest form, sorted.
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
