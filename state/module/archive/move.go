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

// relative returns p, which is below dir, relative to dir.
func relative(dir, p string) string {
	return strings.TrimPrefix(strings.TrimPrefix(p, dir), "/")
}

// mover renames the extracted files to their final paths. A new directory is renamed as a whole, and a file
// replaces another one atomically.
type mover struct {
	ctx    context.Context
	files  host.Files // of the target directory
	dir    string     // the path of the target directory
	stage  string     // the temporary directory in it
	writer *writer
	keep   bool            // the archive has no owners: a file keeps the owner of the file that it replaces
	there  map[string]bool // directories that existed before
}

// move renames the content of a directory. If the run is interrupted, it stops between two names.
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
		return host.WithObstacle(path.Join(m.dir, p), fmt.Errorf("%s exists and has another type than in the archive", p))
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

// sameOwner gives a new file the owner of the file that it replaces, unless the state declares an owner.
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

// copy copies a file or directory to its final path, if that is on another file system and a rename is not possible.
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
	if err := m.files.Write(p, host.NewFile{Content: host.Bounded(m.ctx, content), Mode: &info.Mode, UID: uid, GID: gid,
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
