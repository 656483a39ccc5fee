package site

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Unstable reports whether an error means that a path has changed since it was recorded.
func Unstable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// NoteTemporary records a directory in which states are about to make temporary files, so that the next run after a
// power failure finds them. If it cannot be recorded, at worst a file is left.
func (s *Site) NoteTemporary(dir string) {
	f, err := os.OpenFile(s.Layout.Temporary(), os.O_APPEND|os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return
	}
	_, err = f.WriteString(dir + "\n")
	_ = errors.Join(err, f.Sync(), f.Close())
}

// InJournal is the prefix of a line that names a journal: temporary files are in the directories of the files that its
// newest run changed.
const InJournal = "journal "

// SweepTemporary removes the temporary files of states that were killed. The caller must hold the lock, so that no
// other run is writing. The next call retries files that cannot be removed now.
func (s *Site) SweepTemporary(ctx context.Context) error {
	data, err := walk.ReadFile(s.Layout.Temporary())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for line := range strings.Lines(string(data)) {
		dir, whole := strings.CutSuffix(line, "\n")
		switch journal, beside := strings.CutPrefix(dir, InJournal); {
		case whole && beside:
			errs = append(errs, s.sweepBeside(ctx, journal))
		case whole && filepath.IsAbs(dir): // else the line is incomplete, and no file was created there
			errs = append(errs, s.sweepSafely(ctx, s.Layout.Inside(dir)))
		}
	}
	return errors.Join(errs...)
}

// sweepBeside sweeps the directories of the files that a journal names.
func (s *Site) sweepBeside(ctx context.Context, dir string) error {
	dirs, err := journal.Journal{Dir: dir}.Dirs()
	errs := []error{err}
	for _, dir := range dirs {
		errs = append(errs, s.sweepSafely(ctx, dir))
	}
	return errors.Join(errs...)
}

// sweepSafely removes temporary files from a directory of the host, which may belong to a user. It leaves a directory
// that was replaced by a link since.
func (s *Site) sweepSafely(ctx context.Context, dir string) error {
	root, err := s.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := root.OpenDir(dir)
	var unsafe *walk.UnsafeError
	if errors.As(err, &unsafe) || err != nil && Unstable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.ReadDir()
	errs := []error{err}
	for _, name := range names {
		if !strings.HasPrefix(name, walk.TempPrefix) {
			continue
		}
		remove, err := s.left(d, name)
		if err == nil && remove {
			err = d.RemoveAll(ctx, name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// left reports whether the agent may have left an entry with the name of a temporary file. It may have its later owner
// already, but not in a directory such as /tmp, where other users can make large trees with any name.
func (s *Site) left(d *walk.Dir, name string) (bool, error) {
	st, err := d.Lstat(name)
	if found, err := walk.Found(err); !found {
		return false, err
	}
	if slices.Contains(append(s.TrustedUsers(), uint32(os.Geteuid())), st.Uid) {
		return true, nil
	}
	in, err := d.Lstat(".")
	return err == nil && in.Mode&unix.S_ISVTX == 0, err
}
