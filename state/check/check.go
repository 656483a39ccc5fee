// Package check finds mistakes in the SLS files and templates of a tree that do not depend on the host, when a
// release is built.
//
// It reports Jinja that cannot be parsed, YAML that cannot be read, and unknown names of state functions and of their
// arguments. Files with Jinja are not rendered: the text without its tags is read as YAML, and only definite mistakes
// in it are reported. The known functions and arguments are listed in functions.txt, because the program that builds
// releases does not link the state modules.
package check

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	jinjasalt "github.com/corpus-agent/corpus-agent/state/jinja/salt"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// stateRoots returns the directories of a release that have its states, and pillarRoots those that have its pillar.
func stateRoots() []string  { return []string{"salt/config/states", "states"} }
func pillarRoots() []string { return []string{"salt/config/pillar", "pillar"} }

// Tree returns the mistakes in the SLS files and templates of a release.
func Tree(release fs.FS) (diag.List, error) { return mistakes(release, stateRoots(), pillarRoots()) }

// mistakes returns the mistakes below directories of states and of pillar files.
func mistakes(tree fs.FS, states, pillars []string) (diag.List, error) {
	c := &checker{release: tree, own: map[string]bool{},
		shaping: regexp.MustCompile(`\{%|(?m:^[ \t-]*\{\{)|(?m:\}\}.*:(\s|$))`)}
	c.env = jinja.New(jinja.Options{Filters: filters(), Tests: jinjasalt.Tests()})
	for _, root := range states {
		if err := c.findOwn(root); err != nil {
			return nil, err
		}
	}
	for _, root := range states {
		if err := c.root(root, true); err != nil {
			return nil, err
		}
	}
	for _, root := range pillars {
		if err := c.root(root, false); err != nil {
			return nil, err
		}
	}
	return c.problems, nil
}

// filters returns the filters that SLS files may use. Those that read files of a host exist only by name here.
func filters() map[string]jinja.Filter {
	all := jinjasalt.Filters()
	for _, name := range HostFilters() {
		all[name] = func(*jinja.Call) (any, error) { return nil, nil }
	}
	return all
}

// HostFilters lists the filters that read the host.
func HostFilters() []string {
	return []string{"which", "is_text_file", "is_bin_file", "is_empty", "list_files", "file_hashsum"}
}

type checker struct {
	release  fs.FS
	env      *jinja.Env
	own      map[string]bool // states for which the tree has a module of its own
	problems diag.List
	// shaping matches tags of a template on which the structure of its YAML may depend: statements, and expressions that
	// begin a line or an item, or are in a key. Without them the masked text is valid YAML if the rendered text is.
	shaping *regexp.Regexp
}

// findOwn finds the tree's own state modules.
func (c *checker) findOwn(root string) error {
	entries, err := fs.ReadDir(c.release, path.Join(root, "_states"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		c.own[strings.TrimSuffix(e.Name(), ".py")] = true
	}
	return err
}

func (c *checker) root(root string, states bool) error {
	if info, err := fs.Stat(c.release, root); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	return fs.WalkDir(c.release, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		sls := path.Ext(name) == ".sls"
		if !sls && !slices.Contains([]string{".jinja", ".jinja2", ".j2"}, path.Ext(name)) {
			return nil
		}
		data, err := fs.ReadFile(c.release, name)
		if err != nil {
			return err
		}
		switch {
		case !sls:
			c.template(name, string(data))
		case rendered(string(data)):
			c.sls(name, string(data), states && path.Base(name) != "top.sls")
		}
		return nil
	})
}

// rendered reports whether a file is YAML, with or without Jinja, as most are.
func rendered(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	pipe, named := strings.CutPrefix(strings.TrimSpace(line), "#!")
	return !named || pipe == "yaml" || pipe == "jinja|yaml" || strings.HasPrefix(pipe, "/")
}

// template checks that a template can be parsed.
func (c *checker) template(name, text string) bool {
	_, err := c.env.Parse(jinja.Source{Name: name, File: name, Text: text})
	c.problems.AddError(diag.Pos{File: name}, err)
	return err == nil
}

func (c *checker) sls(name, text string, declares bool) {
	plain := !strings.Contains(text, "{{") && !strings.Contains(text, "{%") && !strings.Contains(text, "{#")
	lines := strings.Split(text, "\n")
	if !plain {
		if !c.template(name, text) || opaque().MatchString(text) || !declares && c.shaping.MatchString(text) {
			return
		}
		text = masked(text)
	}
	doc, err := yaml.LoadString(text, name)
	switch {
	case err != nil && (plain || !declares):
		c.problems.AddError(diag.Pos{File: name}, err)
	case err != nil:
	case declares:
		(&file{checker: c, doc: doc, lines: lines}).declarations(doc.Value)
	case plain:
		c.mapping(doc)
	}
}

// mapping checks that a file that is no template is a mapping, as files of the pillar and top files have to be.
func (c *checker) mapping(doc *yaml.Document) {
	if _, is := doc.Value.(*value.Map); !is && value.Truth(doc.Value) {
		c.problems.Add(doc.Start(), "it renders to a %s, and a mapping was expected", value.TypeName(doc.Value)).
			WithHint(diag.SLS, "an SLS file is `key: value` at its top")
	}
}
