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
)

// written is a work tree that git is about to write, and how it is put back where links lead out of it. Who made the
// repository did not write the states: a link of it would have a later state, of a path below the work tree, write as
// root wherever it leads.
type written struct {
	dir     string
	allowed bool     // links may lead anywhere
	back    []string // the git command that puts back what was checked out; nil for a clone that is made
}

// within runs what writes a work tree, and refuses links that root would follow out of it. A new clone is removed then,
// and an older one is put back, so that the next run finds the same.
func (a access) within(ctx context.Context, h *host.Host, w written, write func() error) error {
	if w.allowed || a.User != "" && a.User != "root" {
		return write()
	}
	before, err := host.OutwardLinks(ctx, h.Files, w.dir, ".git")
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
	refused := diag.WithHint(fmt.Errorf("the work tree is refused: the link %s leads to %s, which is not below %s",
		name, found[name], w.dir),
		"take it out of the repository, or set allow_outside_links: True if later states may write and read through it")
	return errors.Join(refused, a.putBack(ctx, h, w, before), failed)
}

// added are the links that lead out of a work tree and did not before.
func (w written) added(ctx context.Context, h *host.Host, before map[string]string) (map[string]string, error) {
	found, err := host.OutwardLinks(ctx, h.Files, w.dir, ".git")
	maps.DeleteFunc(found, func(name, target string) bool { return before[name] == target })
	return found, err
}

// putBack takes away what git has written. Links that are there after that are of submodules, or of a work tree that
// git could not put back, and are removed.
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
