package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Sync prepares the host for the project of a pair: its registry entry, directories, user and links, and, in a release
// that did not come from the store, default procedures. What exists is kept.
func (r *Run) Sync(ctx context.Context, pair ledger.Pair) error {
	follows, err := r.follows(pair, procedure.Sync)
	if err != nil || !r.Only.Has(procedure.Sync) || r.Entry == nil && !follows || pair.BaseAlone() {
		return err
	}
	return r.Record.Stage(procedure.Sync, pair.Service.Project, func() error {
		r.Register(pair.Service.Project)
		if err := r.Prepare(ctx); err != nil {
			return err
		}
		if pair.Service.Local == "" {
			return nil
		}
		root, err := r.Host.OpenSafely()
		if err != nil {
			return err
		}
		defer root.Close()
		written, err := procedure.WriteSkeleton(root, r.Host.Layout.Inside(r.tree(pair)), pair.Service.Project)
		if len(written) > 0 {
			r.Record.Note("default procedures were written into %s: %s", procedure.Dir, strings.Join(written, ", "))
		}
		return err
	})
}

// Register creates the registry entry of a project that has none.
func (r *Run) Register(name string) {
	if r.Entry == nil {
		user := records.UserName(name)
		r.Entry = &ledger.Project{Name: name, User: user, Group: user}
	}
}

// The directories in which Salt's own tools find states and pillars of projects.
const (
	StatesDir  = "/srv/salt/makina-projects"
	PillarsDir = "/srv/pillar/makina-projects"
)

// Prepare creates the directories, the user and the links of the project.
func (r *Run) Prepare(ctx context.Context) error {
	p := r.Host.LayoutOf(r.Entry.Name)
	if err := LayOut(p); err != nil {
		return err
	}
	if err := r.account(ctx); err != nil {
		return err
	}
	for _, l := range []struct{ dir, target string }{
		{StatesDir, filepath.Join("..", "..", "projects", p.Name, "next", procedure.Dir)},
		{PillarsDir, filepath.Join("..", "..", "projects", p.Name, "pillar")},
	} {
		if err := r.wire(filepath.Join(r.Host.Layout.Path(l.dir), p.Name), l.target); err != nil {
			return err
		}
	}
	return nil
}

// wire creates a link. It keeps anything else in its place, and notes that.
func (r *Run) wire(link, target string) error {
	if above := filepath.Dir(link); walk.Misplaced(above) || walk.Misplaced(filepath.Dir(above)) {
		r.Record.Note(
			"%s is not made, since something else is in the place of a directory above it: move that away",
			r.Host.Layout.Inside(link),
		)
		return nil
	}
	info, err := os.Lstat(link)
	found, err := walk.Found(err)
	if err != nil {
		return err
	}
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	if found && info.Mode()&fs.ModeSymlink == 0 {
		r.Record.Note("%s is not a link and stays; %s is not found there", r.Host.Layout.Inside(link), r.Entry.Name)
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return fmt.Errorf("linking %s: %w", link, err)
	}
	return durable.Symlink(target, link)
}

// Enter reads the registry entry of the run's project.
func (r *Run) Enter(project string) error {
	entry, notes, err := r.Host.Entry(project, !r.Test)
	var corrupt *ledger.Corrupt
	if r.Test && errors.As(err, &corrupt) {
		entry, err = r.Host.EntryFromDisk(project) // a run that is not dry creates the same entry, and notes that
	}
	r.Entry = entry
	for _, text := range notes {
		r.Record.Note("%s", text)
	}
	return exit.WithCode(exit.Usage, err)
}

// LayOut creates the directories of a project that do not exist.
func LayOut(p layout.Project) error {
	for _, d := range []struct {
		dir  string
		mode fs.FileMode
	}{{p.Dir, 0o755}, {p.Releases(), 0o755}, {p.Data(), 0o755}, {p.Archives(), 0o700}, {p.Pillar(), 0o700}} {
		if err := durable.MkdirAll(d.dir, d.mode); err != nil {
			return fmt.Errorf("laying out %s: %w", p.Name, err)
		}
	}
	return nil
}
