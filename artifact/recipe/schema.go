package recipe

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Kind is the kind of a key's value.
type Kind string

// The kinds of values.
const (
	Text     Kind = "text"
	Texts    Kind = "list of texts"
	Path     Kind = "path inside the tree"
	Paths    Kind = "list of paths inside the tree"
	Absolute Kind = "absolute path"
	Section  Kind = "mapping"
	Sections Kind = "list of mappings"
	Probes   Kind = "mapping, or list of probes"
	Flag     Kind = "true or false"
	Data     Kind = "mapping of any keys"
)

// Key is one key of the file.
type Key struct {
	Name     string
	Kind     Kind
	Doc      string
	Choices  []string           // the only allowed values; nil allows any
	Pattern  string             // regular expression for a text; "" allows any
	Required bool               // in its section
	Check    func(string) error // returns an error for an invalid text; nil allows any
	Builders []string           // the builders that read it; nil means all
	Keys     []Key              // of a section
}

// Patterns of names and versions, as in stores.
const (
	namePattern = `^[a-z][a-z0-9-]{0,62}$`
	modePattern = `^0?[0-7]{3}$`
	basePattern = `^(debian|ubuntu)/[a-z]+$`
)

// formOf describes the texts that a pattern matches.
func formOf(pattern string) string {
	switch pattern {
	case namePattern:
		return "at most 63 lower-case letters, digits and hyphens, of which the first is a letter, such as my-app"
	case modePattern:
		return "three octal digits, such as 0640"
	case basePattern:
		return "a distribution and its release, such as debian/bookworm"
	}
	return "a text that matches " + pattern
}

// Keys returns all keys in the order in which they are documented.
func Keys() []Key {
	return []Key{
		{Name: "name", Kind: Text, Pattern: namePattern, Doc: "the project; the directory's name by default"},
		{Name: "version", Kind: Text, Check: artifact.CheckVersion,
			Doc: "the version, or git for what git describes the tree as, which is the default"},
		{Name: "builder", Kind: Text, Choices: []string{"tree", "command", "python", "node", "go"},
			Doc: "what makes the release of the tree; tree takes it as it is"},
		{Name: "build", Kind: Section, Doc: "settings of the builder", Keys: buildKeys()},
		{Name: "prefix", Kind: Absolute, Doc: "where packages and images install the release; /opt/NAME by default"},
		{Name: "files", Kind: Paths,
			Doc: "what of the tree, or of the builder's output, belongs to the release; all by default"},
		{Name: "leave_out", Kind: Texts, Doc: "patterns of names, or of paths where they hold a slash, that do not"},
		{Name: "allow", Kind: Paths, Doc: "files that look like secrets and are none"},
		{Name: "allow_secrets", Kind: Sections, Doc: "findings of the search for secrets that may be released",
			Keys: secretKeys()},
		{Name: "writable", Kind: Paths,
			Doc: "what the project's user may change on a host; it must not hold what the agent reads or runs"},
		{Name: WritableCodeKey, Kind: Flag,
			Doc: "writable may name what the agent reads or runs as root, and . for the whole release: the project's user can " +
				"become root"},
		{Name: "health", Kind: Probes, Doc: "when the release counts as healthy: probes, and how long they may take"},
		{Name: "hooks", Kind: Section,
			Doc: "scripts of the tree that an agent runs while it deploys, in this order; hooks/STAGE.d holds them in the " +
				"release", Keys: hookKeys()},
		{Name: "units", Kind: Paths, Check: checkUnit,
			Doc: "the release's units, in the order in which an agent restarts them: files of the tree, which packages " +
				"install, or names of other units; those that start through its links by default"},
		{Name: "reload", Kind: Texts, Check: artifact.CheckUnit,
			Doc: "names of units that an agent reloads and does not restart"},
		{Name: "templates", Kind: Sections, Doc: "configuration files that a host renders from its pillar and grains",
			Keys: templateKeys()},
		{Name: "package", Kind: Section, Doc: "what packages and images say of themselves", Keys: packageKeys()},
	}
}

func buildKeys() []Key {
	return []Key{
		{Name: "command", Kind: Texts, Builders: []string{"command"},
			Doc: "command: a program and its arguments, run in a copy of the tree"},
		{Name: "output", Kind: Path, Builders: []string{"command", "node"},
			Doc: "command, node: the directory that is released; the whole tree by default"},
		{Name: "base", Kind: Text, Pattern: basePattern, Builders: running(),
			Doc: "the clean system to build in, such as debian/bookworm; this machine by default"},
		{Name: "needs", Kind: Texts, Builders: running(), Doc: "packages of the base that the build takes"},
		{Name: "python", Kind: Text, Builders: []string{"python"}, Doc: "python: the interpreter; python3 by default"},
		{Name: "requirements", Kind: Path, Builders: []string{"python"},
			Doc: "python: a file of requirements, with hashes or without"},
		{Name: "wheels", Kind: Path, Builders: []string{"python"},
			Doc: "python: a directory of wheels to install from, and from nowhere else"},
		{Name: "install", Kind: Texts, Builders: []string{"python"}, Doc: "python: source trees to install, paths or URLs"},
		{Name: "main", Kind: Texts, Builders: []string{"go"}, Doc: "go: the packages to build; ./... by default"},
		{Name: "script", Kind: Text, Builders: []string{"node"}, Doc: "node: a script of package.json to run after npm ci"},
	}
}

// running returns the builders that run programs.
func running() []string { return []string{"command", "python", "node", "go"} }

// checkUnit checks a unit that is named by its file in the tree, or by its name.
func checkUnit(unit string) error { return artifact.CheckUnit(path.Base(unit)) }

func hookKeys() []Key {
	return []Key{
		{Name: "pre_archive", Kind: Paths, Doc: "before the release is archived"},
		{Name: "post_archive", Kind: Paths, Doc: "after the release is archived"},
		{Name: "pre_release", Kind: Paths, Doc: "before the host converges to it"},
		{Name: "post_release", Kind: Paths, Doc: "after it is current"},
	}
}

func secretKeys() []Key {
	return []Key{
		{Name: "path", Kind: Path, Required: true, Doc: "a file, or a directory with all below it"},
		{Name: "rule", Kind: Text, Doc: "the rule that found it; all rules by default"},
		{Name: "reason", Kind: Text, Required: true, Doc: "why it is not a secret, or may be published anyway"},
	}
}

func templateKeys() []Key {
	return []Key{
		{Name: "source", Kind: Path, Required: true, Doc: "the template in the release"},
		{Name: "target", Kind: Absolute, Required: true, Doc: "the file on the host"},
		{Name: "mode", Kind: Text, Pattern: modePattern, Doc: "its mode; 0644 by default"},
		{Name: "user", Kind: Text, Check: artifact.CheckUser, Doc: "its owner; root by default"},
		{Name: "group", Kind: Text, Check: artifact.CheckUser, Doc: "its group; root by default"},
		{Name: "check", Kind: Text, Doc: "a command that is given the rendered file and refuses it by failing"},
		{Name: "host_only", Kind: Flag, Doc: "only an agent renders it; packages and images come without the file"},
	}
}

func packageKeys() []Key {
	return []Key{
		{Name: "description", Kind: Text, Doc: "what it is, in a line or more"},
		{Name: "maintainer", Kind: Text, Doc: "Name <address>"},
		{Name: "license", Kind: Text, Doc: "an SPDX expression"},
		{Name: "homepage", Kind: Text, Doc: "a URL"},
		{Name: "depends", Kind: Texts, Doc: "packages it needs"},
		{Name: "pre_install", Kind: Path, Doc: "a script of the tree to run before installing"},
		{Name: "post_install", Kind: Path, Doc: "a script of the tree to run after installing"},
		{Name: "pre_remove", Kind: Path, Doc: "a script of the tree to run before removing"},
		{Name: "post_remove", Kind: Path, Doc: "a script of the tree to run after removing"},
		{Name: "command", Kind: Texts,
			Doc: "what an image runs; paths through the release's links become those below prefix"},
		{Name: "base", Kind: Text,
			Doc: "what an image is put on: a directory, a tar archive or an OCI image layout; nothing by default"},
		{Name: "pillar", Kind: Data, Doc: "the pillar that templates are rendered with for packages and images"},
	}
}

// parser parses a file and collects its problems.
type parser struct {
	file       string
	lenient    bool // unknown keys are ignored
	readHealth Health
	places     map[string]diag.Pos // of the paths that the file names
	problems   diag.List
}

func (p *parser) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: p.file, Line: n.Line, Col: n.Column}
}

func (p *parser) add(n *yaml.Node, format string, args ...any) *diag.Diagnostic {
	return p.problems.Add(p.pos(n), format, args...)
}

func (p *parser) section(n *yaml.Node, keys []Key) {
	if n.Kind != yaml.MappingNode {
		p.add(n, "a mapping was expected").WithHint(diag.Recipe, "write `key: value`")
		return
	}
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name.Value })
		switch {
		case at < 0:
			p.unknown(name, names(keys))
		case given[name.Value]:
			p.add(name, "%s is given twice", name.Value).WithHint(diag.Recipe, "keep one of them")
		default:
			given[name.Value] = true
			p.value(value, keys[at])
		}
	}
	for _, k := range keys {
		if k.Required && !given[k.Name] {
			p.add(n, "%s is missing", k.Name).WithHint(diag.Recipe, k.Name+" is "+k.Doc)
		}
	}
}

func names(keys []Key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.Name
	}
	return list
}

func (p *parser) value(n *yaml.Node, k Key) {
	switch k.Kind {
	case Section:
		p.section(n, k.Keys)
	case Data:
		p.data(n, k)
	case Probes:
		p.readHealth = p.health(n)
	case Texts, Paths, Sections:
		p.list(n, k)
	default:
		p.scalar(n, k)
	}
}

// data checks that a value is a mapping whose keys at all depths are texts.
func (p *parser) data(n *yaml.Node, k Key) {
	var into map[string]any
	if n.Kind != yaml.MappingNode || n.Decode(&into) != nil || !plain(into) {
		p.add(n, "%s is a %s, of texts, numbers, lists and mappings", k.Name,
			k.Kind).WithHint(diag.Recipe, "write `key: value`, and quote keys and dates")
	}
}

// plain reports whether a value can be represented in JSON.
func plain(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			if !plain(item) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !plain(item) })
	case nil, bool, string, int, int64, uint64, float64:
		return true
	}
	return false
}

func (p *parser) list(n *yaml.Node, k Key) {
	if n.Kind != yaml.SequenceNode {
		p.add(n, "%s is a %s", k.Name, k.Kind).WithHint(diag.Recipe, fmt.Sprintf("write `%s: [...]`", k.Name))
		return
	}
	for _, item := range n.Content {
		switch k.Kind {
		case Sections:
			p.section(item, k.Keys)
		case Paths:
			p.scalar(item, Key{Name: k.Name, Kind: Path, Check: k.Check})
		default:
			p.scalar(item, Key{Name: k.Name, Kind: Text, Check: k.Check})
		}
	}
}

// withArticle returns the kind as the object of a sentence.
func (k Kind) withArticle() string {
	switch k {
	case Flag:
		return string(k)
	case Absolute:
		return "an " + string(k)
	}
	return "a " + string(k)
}

func (p *parser) scalar(n *yaml.Node, k Key) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.add(n, "%s must be %s", k.Name, k.Kind.withArticle())
		return
	}
	if k.Kind == Path || k.Name == "reload" {
		p.places[path.Clean(n.Value)] = p.pos(n)
	}
	switch {
	case k.Kind == Flag && n.Tag != "!!bool":
		p.add(n, "%s is %q, and true or false was expected", k.Name, n.Value).WithHint(diag.Recipe, "write true or false")
	case k.Kind == Path && !fs.ValidPath(path.Clean(n.Value)):
		p.add(n, "%q is not a path inside the tree", n.Value).
			WithHint(diag.Recipe, "write it relative to the top, without ..")
	case k.Kind == Absolute && (!path.IsAbs(n.Value) || path.Clean(n.Value) != n.Value):
		p.add(n, "%q is not an absolute path", n.Value).WithHint(diag.Recipe, "write it from / on, without ..")
	case k.Choices != nil && !p.lenient && !slices.Contains(k.Choices, n.Value):
		hint := diag.DidYouMean(n.Value, k.Choices)
		if hint == "" {
			hint = "one of " + strings.Join(k.Choices, ", ")
		}
		p.add(n, "%s is %q, which is not one of its values", k.Name, n.Value).WithHint(diag.Recipe, hint)
	case k.Pattern != "" && !regexp.MustCompile(k.Pattern).MatchString(n.Value):
		p.add(n, "%s is %q, which has the wrong form", k.Name, n.Value).WithHint(diag.Recipe, "write "+formOf(k.Pattern))
	case k.Check != nil && (!p.lenient || k.Name != "version"): // a host uses the signed version
		if err := k.Check(n.Value); err != nil {
			p.add(n, "%s: %v", k.Name, err).WithHint(diag.Recipe, diag.HintOf(err))
		}
	}
}
