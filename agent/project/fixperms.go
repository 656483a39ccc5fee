package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// maxDepth limits how many levels of directories are given to a user: each level takes a descriptor.
const maxDepth = 256

// giveToUser is the built-in fixperms: it makes the project's user the owner of data and of the writable paths of the
// release, and the pillar accessible to root alone. The user may move files meanwhile, so no link is followed; a file
// whose owner cannot be changed safely stays unchanged and is noted.
func (r *Run) giveToUser(ctx context.Context, pair ledger.Pair) error {
	root, err := r.Host.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	p := r.Host.LayoutOf(pair.Service.Project)
	if err := r.closePillar(root, p); err != nil {
		return err
	}
	h, err := r.Host.StateHost()
	if err != nil || r.Entry == nil || r.Entry.User == "" {
		return err
	}
	user, known, err := h.Accounts.User(r.Entry.User)
	if err != nil {
		return err
	}
	if !known || !h.Files.CanChown() {
		r.Record.Note(
			"fixperms left owners as they are: there is no user %s, or files cannot be given to others here",
			r.Entry.User,
		)
		return nil
	}
	g := giver{ctx: ctx, uid: user.UID, gid: user.GID}
	err = g.below(root, r.Host.Layout.Inside(p.Dir), "data")
	names, listErr := r.writable(pair)
	err = errors.Join(err, listErr)
	for _, name := range names {
		err = errors.Join(err, g.below(root, r.Host.Layout.Inside(p.Release(pair.Service.Dir())), name))
	}
	g.note(r.Record)
	if err != nil {
		return fmt.Errorf("fixperms of %s: %w", p.Name, err)
	}
	return nil
}

func (r *Run) closePillar(root *walk.Root, p layout.Project) error {
	dir, name, err := root.Parent(r.Host.Layout.Inside(p.Pillar()))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Chmod(name, 0o700); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writable returns the paths of a release that belong to the project's user. It returns none for a working tree, which
// stays its developer's.
func (r *Run) writable(pair ledger.Pair) ([]string, error) {
	if pair.Service.Local == trust.ByEditable {
		return nil, nil
	}
	says, err := r.Host.Recipe(pair.Service)
	if len(says.Denied) > 0 {
		r.Record.Note(
			"%s calls %s writable, which is or holds what the agent reads or runs; it stays root's. "+
				"Name the directories that the service writes to, or see %s in docs/packaging.md",
			pair.Service,
			strings.Join(says.Denied, ", "),
			recipe.WritableCodeKey,
		)
	}
	return says.Writable, err
}

// giver changes the owner of trees.
type giver struct {
	ctx      context.Context
	uid, gid int
	left     int // names that stay unchanged
	first    error
}

// below changes the owner of name, a path below base, a directory of root's. No part of the path may be a link.
func (g *giver) below(root *walk.Root, base, name string) error {
	dir, err := root.OpenDir(base)
	if err != nil {
		return err
	}
	defer dir.Close()
	way, last := path.Split(path.Clean(name))
	parent, err := dir.Below(strings.FieldsFunc(way, func(c rune) bool { return c == '/' }))
	if err != nil {
		return g.leave(err)
	}
	defer parent.Close()
	return g.give(parent, last, 0)
}

// give changes the owner of a name in dir and of everything below it.
func (g *giver) give(dir *walk.Dir, name string, depth int) error {
	if err := g.ctx.Err(); err != nil {
		return err
	}
	if depth == maxDepth {
		return g.leave(fmt.Errorf("%s: %w", walk.Clip(path.Join(dir.Path(), name)), errDeep))
	}
	st, err := dir.Lstat(name)
	if err == nil {
		err = dir.Give(name, g.uid, g.gid)
	}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return g.leave(err)
	}
	sub, err := dir.OpenDir(name)
	if err != nil {
		return g.leave(err)
	}
	defer sub.Close()
	names, err := sub.ReadDir()
	if err != nil {
		return g.leave(err)
	}
	for _, n := range names {
		if err := g.give(sub, n, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leave counts a name that stays unchanged, and returns nil, for errors that the user may have caused: a file that
// vanished, a link or a pipe in the place of a directory, a file with a second name. It returns all other errors.
func (g *giver) leave(err error) error {
	var unsafe *walk.UnsafeError
	if err == nil ||
		!site.Unstable(err) && !errors.As(err, &unsafe) && !errors.Is(err, unix.EPERM) && !errors.Is(err, errDeep) {
		return err
	}
	if g.left++; g.first == nil {
		g.first = err
	}
	return nil
}

var errDeep = fmt.Errorf("directories lie more than %d deep", maxDepth)

func (g *giver) note(record *report.Builder) {
	if g.left == 1 && errors.Is(g.first, fs.ErrNotExist) {
		return // a writable path that the release does not have
	}
	if g.left > 0 {
		record.Note(
			"fixperms left %s alone, for changing meanwhile or being unsafe to give away; the first: %v",
			diag.Count(g.left, "name"),
			g.first,
		)
	}
}
