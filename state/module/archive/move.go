package archive

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// relative is a path below a directory without that directory.
func relative(dir, p string) string {
	return strings.TrimPrefix(strings.TrimPrefix(p, dir), "/")
}

// mover gives what was extracted its names. A directory that is not there yet moves at once, with all that is in it;
// a file takes the place of another at once.
type mover struct {
	ctx    context.Context
	files  host.Files // of the directory that is extracted to
	stage  string     // where in it
	writer *writer
	keep   bool            // files whose archive knows no owners keep those that are there
	there  map[string]bool // directories that were there before
}

// move moves what lies in a directory. It stops between two names when the run is interrupted.
func (m *mover) move(dir string) error {
	names, err := m.files.ReadDir(path.Join(m.stage, dir))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		if err := m.moveOne(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) moveOne(p string) error {
	from := path.Join(m.stage, p)
	info, err := m.files.Lstat(from)
	if err != nil {
		return err
	}
	old, err := m.files.Lstat(p)
	found, err := walk.Found(err)
	switch {
	case err != nil:
		return err
	case found && info.IsDir() != old.IsDir():
		return fmt.Errorf("%s is there and is of another kind than in the archive", p)
	case found && info.IsDir():
		return m.enter(p)
	case found && m.keep && old.IsRegular():
		if err := m.sameOwner(from, old); err != nil {
			return err
		}
	}
	err = m.files.Rename(from, p)
	if errors.Is(err, host.ErrOtherFilesystem) {
		return m.copy(from, p, info)
	}
	return err
}

func (m *mover) enter(p string) error {
	if m.there == nil {
		m.there = map[string]bool{}
	}
	m.there[p] = true
	return m.move(p)
}

// sameOwner gives a file to whom the one belongs that it replaces, as far as the state names no other.
func (m *mover) sameOwner(from string, old host.Info) error {
	uid, gid := -1, -1
	if m.writer.uid < 0 {
		uid = old.UID
	}
	if m.writer.gid < 0 {
		gid = old.GID
	}
	if !m.writer.mayChown(uid, gid) {
		return nil
	}
	return m.files.Chown(from, uid, gid)
}

// copy is for a directory with another filesystem in it, where nothing can be moved to.
func (m *mover) copy(from, p string, info host.Info) error {
	switch {
	case info.IsDir():
		if err := m.files.Mkdir(p, info.Mode.Perm()); err != nil {
			return err
		}
		if err := m.own(p+"/.", info); err != nil {
			return err
		}
		return m.enter(p)
	case info.IsLink():
		target, err := m.files.Readlink(from)
		if err != nil {
			return err
		}
		if err := m.files.Symlink(target, p); err != nil {
			return err
		}
		return m.own(p, info)
	}
	content, err := m.files.Open(from)
	if err != nil {
		return err
	}
	defer content.Close()
	uid, gid := -1, -1
	if m.writer.h.Files.CanChown() {
		uid, gid = info.UID, info.GID
	}
	if err := m.files.Write(p, host.NewFile{Content: host.Seen(m.ctx, content), Mode: &info.Mode, UID: uid, GID: gid,
		ReplaceLink: true}); err != nil {
		return err
	}
	return m.files.Chtimes(p, info.Accessed, info.Modified)
}

func (m *mover) own(p string, info host.Info) error {
	if !m.writer.mayChown(info.UID, info.GID) {
		return nil
	}
	return m.files.Chown(p, info.UID, info.GID)
}
