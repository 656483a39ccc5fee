package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
)

// written describes a work tree that git is about to write, and how to restore it if links lead out of it. The
// author of the repository is not the author of the states: through such a link, a later state with a path
// below the work tree would write anywhere as root.
type written struct {
	dir     string
	allowed bool     // links may lead anywhere
	back    []string // arguments of the git command that restores the previous checkout; nil for a new clone
}

// within calls write, which writes a work tree. If git runs as root and write has added links that lead out of the
// tree, within returns an error, after it has removed a new clone or restored an existing one, so that the next run
// finds the same state.
func (a access) within(ctx context.Context, h *host.Host, w written, write func() error) error {
	if w.allowed || a.User != "" && a.User != "root" {
		return write()
	}
	before, err := descent.OutwardLinks(ctx, h.Files, w.dir, ".git")
	if err != nil {
		return err
	}
	failed := write()
	found, err := w.added(ctx, h, before)
	if err != nil {
		return errors.Join(failed, err)
	}
	if len(found) == 0 {
		return failed
	}
	name := slices.Sorted(maps.Keys(found))[0]
	refused := diag.Git.Hint(fmt.Errorf("the work tree is refused: the link %s leads to %s, which is not below %s",
		name, found[name], w.dir),
		"take it out of the repository, or set allow_outside_links: True if later states may write and read through it")
	return errors.Join(refused, a.putBack(ctx, h, w, before), failed)
}

// added returns the links that lead out of the work tree and are not in before.
func (w written) added(ctx context.Context, h *host.Host, before map[string]string) (map[string]string, error) {
	found, err := descent.OutwardLinks(ctx, h.Files, w.dir, ".git")
	maps.DeleteFunc(found, func(name, target string) bool { return before[name] == target })
	return found, err
}

// putBack restores the work tree. Links that remain, in submodules or because git could not restore the
// checkout, are removed.
func (a access) putBack(ctx context.Context, h *host.Host, w written, before map[string]string) error {
	if w.back == nil {
		return empty(h, w.dir)
	}
	_, failed := a.git().Do(ctx, h, in(w.dir, w.back...)...)
	found, err := w.added(ctx, h, before)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		err = errors.Join(err, h.Files.Remove(path.Join(w.dir, name)))
	}
	return errors.Join(failed, err)
}
