package external

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// git merges the pillars of repositories, one after the other. Each has a top file of its own. A repository also sees
// the files of the others in its environment, unless git_pillar_includes is false.
func (w World) git(ctx context.Context, argument any) (any, error) {
	remotes, err := w.remotes(argument)
	if err != nil {
		return nil, err
	}
	files := newMemory()
	for i := range remotes {
		if err := w.fetch(ctx, &remotes[i], files); err != nil {
			return nil, fmt.Errorf("%s: %w", remotes[i].label(), err)
		}
	}
	all := value.NewMap()
	for _, r := range remotes {
		if only, _ := w.Options.Value("pillarenv").(string); r.mount != "" || only != "" && only != r.env {
			continue
		}
		data, err := w.Compile(ctx, files, roots.Env{Name: r.env, Dirs: w.gitDirs(r, remotes)})
		if err != nil {
			return nil, err
		}
		if all, err = value.Merge(all, data, w.strategy(), value.Truth(w.Options.Value("pillar_merge_lists"))); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// strategy returns how the pillars of several repositories are merged.
func (w World) strategy() value.Strategy {
	if name, _ := w.Options.Value("pillar_source_merging_strategy").(string); name != "" {
		return value.Strategy(name)
	}
	return value.Smart
}

// gitDirs returns the directory of a repository, and those of the others in its environment.
func (w World) gitDirs(r remote, all []remote) []string {
	dirs := []string{r.place}
	if includes, set := w.Options.Get("git_pillar_includes"); set && !value.Truth(includes) {
		return dirs
	}
	for _, other := range all {
		if other.env == r.env && other.place != r.place {
			dirs = append(dirs, other.place)
		}
	}
	return dirs
}

// remote is one repository with a branch.
type remote struct {
	branch, url string // url without a login
	env         string // environment of its files
	root        string // directory of the files in the repository; "" for the top
	mount       string // path of the files in their environment; "" for the top
	fallback    string // branch instead of one that does not exist; "" for none
	place       string // directory of its files in memory

	user, password string
	key            string // private key for ssh
	insecure       bool   // the server's certificate is not verified
}

// label names a repository in errors.
func (r remote) label() string { return r.branch + " " + r.url }

// placeAmong returns a directory that no other repository has. It is a part of the paths in errors.
func (r remote) placeAmong(others []remote) string {
	_, address, found := strings.Cut(r.url, "://")
	if !found {
		address = r.url
	}
	place := path.Clean("git:" + r.branch + "@" + address)
	for n := 1; ; n++ {
		unique := place + ":"
		if n > 1 {
			unique = fmt.Sprintf("%s (%d):", place, n)
		}
		if !slices.ContainsFunc(others, func(o remote) bool { return o.place == unique }) {
			return unique
		}
	}
}

// remotes reads the argument of the source: repositories as `BRANCH URL`, or mappings of that to parameters.
func (w World) remotes(argument any) (all []remote, err error) {
	list, ok := argument.(*value.List)
	if !ok {
		list = value.NewList(argument)
	}
	for _, item := range list.Items {
		given := value.NewMap()
		if m, ok := item.(*value.Map); ok && m.Len() == 1 {
			item = m.Names()[0]
			if given, err = oneMapping(m.Value(m.Names()[0])); err != nil {
				return nil, err
			}
		}
		words := strings.Fields(value.Str(item))
		if text, ok := item.(string); !ok || len(words) != 2 {
			return nil, diag.External.Hint(fmt.Errorf("%q is not a branch and the URL of a repository", text),
				"write `- BRANCH URL`, or `- BRANCH URL:` with a list of parameters below it")
		}
		r, err := w.remote(words[0], words[1], given)
		if err != nil {
			return nil, err
		}
		r.place = r.placeAmong(all)
		all = append(all, r)
	}
	return all, nil
}

// oneMapping joins a list of mappings, as Salt's users write parameters.
func oneMapping(v any) (*value.Map, error) {
	switch v := v.(type) {
	case nil:
		return value.NewMap(), nil
	case *value.Map:
		return v, nil
	case *value.List:
		all := value.NewMap()
		for _, item := range v.Items {
			m, ok := item.(*value.Map)
			if !ok {
				return nil, fmt.Errorf("a parameter is a %s, and a mapping was expected", value.TypeName(item))
			}
			all.Update(m)
		}
		return all, nil
	}
	return nil, fmt.Errorf("its parameters are a %s, and a list of mappings was expected", value.TypeName(v))
}
