// Package defaults renders the configuration templates of a release without a host: for packages and images, whose
// files are the same wherever they are installed.
//
// A template can use the default pillar of corpus.yaml, and include other templates of the release. Grains, files and
// the pillar of a host are not available; using them is an error with a position. So is a pillar key that has neither
// a value nor a default, so that no value is silently empty.
package defaults

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	jinjasalt "github.com/corpus-agent/corpus-agent/state/jinja/salt"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Template is a template to render.
type Template struct {
	Tree   fs.FS          // the release
	Source string         // the template in the release
	Pillar map[string]any // the defaults that corpus.yaml gives
}

// hint says how an author makes a template usable for packages.
const hint = "give it a default in the template, as in salt['pillar.get']('key', 'default'), or a value under " +
	"package.pillar of corpus.yaml; " +
	"`host_only: true` beside the template leaves its file out of packages and images"

// Render renders a template. Its errors have their position in the template and a hint.
func Render(ctx context.Context, t Template) (string, error) {
	text, err := fs.ReadFile(t.Tree, path.Clean(t.Source))
	if err != nil {
		return "", err
	}
	env := jinja.New(jinja.Options{Loader: jinja.Tree{Read: t.read}, Globals: globals(), Filters: jinjasalt.Filters(),
		Tests: jinjasalt.Tests()})
	parsed, err := env.Parse(jinja.Source{Name: t.Source, File: t.Source, Text: string(text)})
	if err != nil {
		return "", err
	}
	out, err := parsed.Render(ctx, t.vars())
	if err != nil {
		return "", diag.Call.Hint(err, "%s", hint)
	}
	return out.Text, nil
}

// read finds a template that another one includes, in the state trees of the release.
func (t Template) read(_ context.Context, name string) (text, file string, err error) {
	for _, root := range []string{"salt/config/states", "states"} {
		file = path.Join(root, name)
		data, err := fs.ReadFile(t.Tree, file)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return string(data), file, err
		}
	}
	return "", name, fs.ErrNotExist
}

func globals() *value.Map {
	m := value.NewMap()
	for name, v := range jinjasalt.Globals() {
		m.Set(name, v)
	}
	return m
}

// vars returns the variables of a template. Variables of a host are among them; their use is an error that gives the
// reason.
func (t Template) vars() *value.Map {
	given := t.Pillar
	if given == nil {
		given = map[string]any{}
	}
	data, _ := value.From(given).(*value.Map)
	vars := value.NewMap("pillar", &pillar{object{"pillar"}, data}, "salt", &functions{object{"salt"}, data}, "saltenv",
		"base", "env", "base")
	for _, name := range []string{"grains", "opts"} {
		vars.Set(name, &unknown{object{name}})
	}
	return vars
}
