package packaging

import (
	"context"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/packaging/leaks"
	"github.com/corpus-agent/corpus-agent/packaging/seen"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Allowed is a file, or a directory with everything below it, that looks like a secret and may be packed.
type Allowed struct {
	Path string
	Rule string // the only rule whose findings are allowed; "" for all
}

// AllowedBy returns the files that a recipe allows.
func AllowedBy(r recipe.Recipe) []Allowed {
	var list []Allowed
	for _, name := range r.Allow {
		list = append(list, Allowed{Path: name})
	}
	for _, a := range r.AllowSecrets {
		list = append(list, Allowed{Path: a.Path, Rule: a.Rule})
	}
	return list
}

// allows reports whether a finding about a file is allowed.
func (o Options) allows(name, rule string) bool {
	return slices.ContainsFunc(o.Allow, func(a Allowed) bool {
		at := path.Clean(a.Path)
		return (at == name || strings.HasPrefix(name, at+"/")) && (a.Rule == "" || a.Rule == rule)
	})
}

// CheckSecrets returns an error that lists the files which look like secrets in a tree that is published unchanged. The
// tree's corpus.yaml lists exceptions; no file is left out.
func CheckSecrets(ctx context.Context, dir string) error {
	r, err := recipe.Load(os.DirFS(dir))
	if err != nil {
		return err
	}
	tree, err := openTree(dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	var entries []found
	err = tree.Walk(func(e seen.Entry) error {
		if e.Mode.IsRegular() {
			entries = append(entries, found{Entry: e})
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	var problems diag.List
	if err := (Options{Allow: AllowedBy(r)}).findSecrets(ctx, tree, entries, &problems); err != nil {
		return err
	}
	return problems.Err()
}

// findSecrets adds the files that look like secrets to the problems of a tree, in their order. It reads several
// files concurrently.
func (o Options) findSecrets(ctx context.Context, tree *seen.Tree, entries []found, problems *diag.List) error {
	const share = 64 // files per worker
	findings := make([][]leaks.Finding, len(entries))
	scanner, err := leaks.New()
	if err != nil {
		return err
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(aheadReaders)
	for start := 0; start < len(entries); start += share {
		group.Go(func() error {
			for i := start; i < min(start+share, len(entries)); i++ {
				if err := within.Err(); err != nil {
					return err
				}
				e := entries[i].Entry
				if !e.Mode.IsRegular() || o.allows(e.Name, "") {
					continue
				}
				found, err := scanOne(within, scanner, tree, e)
				if err != nil {
					return err
				}
				findings[i] = found
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, e := range entries {
		for _, f := range findings[i] {
			if !o.allows(e.Name, f.Rule) {
				problems.Add(diag.Pos{File: e.Name, Line: f.Line}, "%s", f).
					WithHint(diag.Tree, "leave it out (`leave_out` in corpus.yaml); in a pillar, encrypt the value with "+
						"age; or if it is not a secret, allow it there: "+
						"`allow_secrets: [{path: "+e.Name+", rule: "+f.Rule+", reason: ...}]`")
			}
		}
	}
	return nil
}

// scanOne scans one file. A file that cannot be opened is an error, since a user who changes the tree can make packing
// find another one.
func scanOne(ctx context.Context, s *leaks.Scanner, tree *seen.Tree, e seen.Entry) ([]leaks.Finding, error) {
	f, err := tree.Open(e)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return s.File(ctx, f, e.Name)
}

// leaves reports whether a pattern leaves out a path. A pattern without a slash matches names in any directory.
func leaves(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		subject := name
		if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
			subject = path.Base(name)
		}
		ok, err := path.Match(strings.Trim(pattern, "/"), subject)
		return err == nil && ok
	})
}
