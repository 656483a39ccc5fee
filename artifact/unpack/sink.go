package unpack

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// sink writes admitted entries below a directory. os.Root confines them to it even if the rules had a gap. The
// directory of the last entry stays open, since archives are usually sorted.
type sink struct {
	root  *os.Root
	files *writer
	in    *directoryHandle
	name  string // name of in

	noClone bool   // the filesystem cannot clone files
	first   string // a directory that was made here
}

func newSink(root *os.Root) *sink { return &sink{root: root, files: newWriter()} }

// close waits for files that are being written, and returns the first error.
func (s *sink) close() error {
	s.leave()
	return s.files.close()
}

// leave closes the directory of the last entry.
func (s *sink) leave() {
	if s.in != nil {
		s.in.release()
	}
	s.in = nil
}

// enter opens the directory of an entry, and makes it if the archive did not.
func (s *sink) enter(name string) (*directoryHandle, error) {
	dir := path.Dir(name)
	if s.in != nil && s.name == dir {
		return s.in, nil
	}
	s.leave()
	file, err := s.open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.mkdir(dir); err != nil {
			return nil, err
		}
		file, err = s.open(dir)
	}
	if err != nil {
		return nil, err
	}
	s.in, s.name = &directoryHandle{file: file}, dir
	s.in.users.Add(1)
	return s.in, nil
}

func (s *sink) open(dir string) (*os.File, error) {
	return s.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}

func (s *sink) directory(e entry) error { return s.mkdir(e.name) }

func (s *sink) mkdir(name string) error {
	if s.first == "" {
		s.first = name
	}
	return s.root.MkdirAll(name, 0o755)
}

func (s *sink) file(e entry, content io.Reader) error {
	in, err := s.enter(e.name)
	if err != nil {
		return err
	}
	return s.files.write(in, e, content)
}

func (s *sink) symlink(e entry) error {
	in, err := s.enter(e.name)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(e.link, int(in.file.Fd()), path.Base(e.name)); err != nil {
		return &fs.PathError{Op: "symlink", Path: e.name, Err: err}
	}
	return nil
}

func (s *sink) hardlink(e entry) error {
	// The file that it links to may still be being written.
	if err := s.files.settle(); err != nil {
		return err
	}
	if _, err := s.enter(e.name); err != nil {
		return err
	}
	return s.root.Link(e.link, e.name)
}

// seal restores the write bits of paths that the release declares writable, and closes the private
// directories. Both come last, since corpus.yaml may be the archive's last entry.
func (s *sink) seal() error {
	r, err := recipe.Load(s.root.FS())
	if err != nil {
		return err
	}
	errs := []error{s.unmask()}
	for _, name := range r.Writable {
		errs = append(errs, s.unlock(name))
	}
	return errors.Join(append(errs, manifest.ClosePrivate(s.root))...)
}

// unmask sets the mode of every directory, if the umask removed some of it. The first directory shows whether it
// did.
func (s *sink) unmask() error {
	if s.first == "" {
		return nil
	}
	if info, err := s.root.Lstat(s.first); err != nil || info.Mode().Perm() == 0o755 {
		return err
	}
	return fs.WalkDir(s.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || p == "." {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm() == 0o755 {
			return err
		}
		return s.root.Chmod(p, 0o755)
	})
}

// unlock makes a path and everything below it writable for its owner.
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
