package unpack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// sink writes admitted entries below a directory. os.Root keeps it there even if the rules had a
// hole; the directory of the last entry stays open, since archives come sorted.
type sink struct {
	root   *os.Root
	parent *os.Root
	name   string // of parent
}

func (s *sink) close() {
	if s.parent != nil && s.parent != s.root {
		_ = s.parent.Close()
	}
	s.parent, s.name = nil, ""
}

// in opens the directory of an entry, making it where the archive did not.
func (s *sink) in(name string) (*os.Root, error) {
	dir := path.Dir(name)
	if s.parent != nil && s.name == dir {
		return s.parent, nil
	}
	s.close()
	if dir == "." {
		s.parent, s.name = s.root, dir
		return s.root, nil
	}
	parent, err := s.root.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.root.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		parent, err = s.root.OpenRoot(dir)
	}
	if err != nil {
		return nil, err
	}
	s.parent, s.name = parent, dir
	return parent, nil
}

func (s *sink) directory(e entry) error {
	parent, err := s.in(e.name)
	if err != nil {
		return err
	}
	// One that an entry below it made already is no error.
	if err := parent.Mkdir(path.Base(e.name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (s *sink) file(e entry, content io.Reader) (err error) {
	parent, err := s.in(e.name)
	if err != nil {
		return err
	}
	base := path.Base(e.name)
	f, err := parent.OpenFile(base, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, content); err != nil {
		return fmt.Errorf("writing %s: %w", e.name, err)
	}
	if err := f.Chmod(e.mode); err != nil {
		return err
	}
	if e.modified.IsZero() {
		return nil
	}
	return parent.Chtimes(base, e.modified, e.modified)
}

func (s *sink) symlink(e entry) error {
	parent, err := s.in(e.name)
	if err != nil {
		return err
	}
	return parent.Symlink(e.link, path.Base(e.name))
}

func (s *sink) hardlink(e entry) error { return s.root.Link(e.link, e.name) }

// private are the directories that hold a host's secrets.
func private() []string { return []string{"pillar", "salt/config/pillar"} }

// seal gives the write bits back to what the release calls writable and closes the private
// directories. Both come last: corpus.yaml may be the archive's last entry.
func (s *sink) seal() error {
	r, err := recipe.Load(s.root.FS())
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range r.Writable {
		errs = append(errs, s.unlock(name))
	}
	for _, name := range private() {
		if info, err := s.root.Lstat(name); err == nil && info.IsDir() {
			errs = append(errs, s.root.Chmod(name, 0o700))
		}
	}
	return errors.Join(errs...)
}

// unlock makes a path and all below it writable for its owner.
func (s *sink) unlock(name string) error {
	err := fs.WalkDir(s.root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return s.root.Chmod(p, info.Mode().Perm()|0o200)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
