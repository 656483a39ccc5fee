package session

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	jinjasalt "github.com/corpus-agent/corpus-agent/state/jinja/salt"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// templates renders the templates of a session. Templates of one tree and environment share the cache of parsed
// files.
type templates struct {
	session *Session
	salt    *saltObject

	mu   sync.Mutex
	envs map[envKey]*jinja.Env
}

type envKey struct {
	tree *roots.Roots
	env  string
	sls  bool // SLS files may have other options than the templates of files
}

func newTemplates(s *Session) *templates {
	return &templates{session: s, salt: newSaltObject(s.functions, s.agentActions.Names()), envs: map[envKey]*jinja.Env{}}
}

// treeKey is the context key of the tree in which imported templates are looked up.
type treeKey struct{}

func withTree(ctx context.Context, tree *roots.Roots) context.Context {
	return context.WithValue(ctx, treeKey{}, tree)
}

// inPillar reports whether files of the pillar are rendered.
func (s *Session) inPillar(ctx context.Context) bool {
	tree, _ := ctx.Value(treeKey{}).(*roots.Roots)
	return tree != nil && tree != s.states
}

// Render is part of render.Templates.
func (t *templates) Render(ctx context.Context, src render.Source, vars *value.Map) (render.Text, error) {
	tree, ok := ctx.Value(treeKey{}).(*roots.Roots)
	if !ok {
		tree = t.session.states
	}
	env := t.env(envKey{tree: tree, env: src.Env, sls: vars.Has("sls")})
	template, err := env.Parse(jinja.Source{Name: src.Name, File: src.File, Text: src.Text})
	if err != nil {
		return render.Text{}, err
	}
	out, err := template.Render(ctx, vars)
	if err != nil {
		return render.Text{}, err
	}
	return render.Text{Text: out.Text, Origin: out.Origin}, nil
}

func (t *templates) env(key envKey) *jinja.Env {
	t.mu.Lock()
	defer t.mu.Unlock()
	if env, ok := t.envs[key]; ok {
		return env
	}
	globals := value.NewMap()
	for name, v := range jinjasalt.Globals() {
		globals.Set(name, v)
	}
	s := t.session
	options := "jinja_env"
	if key.sls {
		options = "jinja_sls_env"
	}
	own, _ := s.options.Value(options).(*value.Map)
	env := jinja.New(jinja.Options{
		Loader: jinja.Tree{Read: func(_ context.Context, name string) (string, string, error) {
			data, file, err := key.tree.Read(key.env, name)
			if errors.Is(err, fs.ErrNotExist) {
				files, _ := key.tree.Files(key.env) // without a list there is no suggestion
				err = diag.Download.Hint(err, "%s", diag.DidYouMean(name, files))
			}
			return string(data), file, err
		}},
		Globals: globals, Filters: s.filters(), Tests: jinjasalt.Tests(), Lenient: s.flag("allow_undefined", false),
		TrimBlocks:   value.Truth(own.Value("trim_blocks")) || s.flag("jinja_trim_blocks", false),
		LstripBlocks: value.Truth(own.Value("lstrip_blocks")) || s.flag("jinja_lstrip_blocks", false),
	})
	t.envs[key] = env
	return env
}

// filters returns Salt's filters, including those that read the host.
func (s *Session) filters() map[string]jinja.Filter {
	facts := s.facts()
	all := jinjasalt.Filters()
	maps.Copy(all, s.Tables.Filters(&facts))
	return all
}

// placeVars returns the variables that hold the path of a template in its tree.
func placeVars(src render.Source, sls string) *value.Map {
	dir := path.Dir(src.Name)
	if dir == "." {
		dir = ""
	}
	tpldir := dir
	if tpldir == "" {
		tpldir = "."
	}
	if sls == "" {
		// A top file has no SLS name; Salt gives it its own directory anyway.
		return value.NewMap("tplpath", src.File, "tplfile", path.Base(src.Name), "tpldir", ".", "tpldot", "",
			"slspath", "", "slsdotpath", "", "slscolonpath", "", "sls_path", "")
	}
	in := func(separator string) string { return strings.ReplaceAll(dir, "/", separator) }
	return value.NewMap("tplpath", src.File, "tplfile", src.Name, "tpldir", tpldir, "tpldot", in("."),
		"slspath", dir, "slsdotpath", in("."), "slscolonpath", in(":"), "sls_path", in("_"))
}
