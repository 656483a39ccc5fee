package site

import (
	"io/fs"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Remoded is a file or directory of a release whose mode was corrected.
type Remoded struct {
	Name      string // in the release
	Was, Mode uint32
}

// RestoreModes restores the modes that unpacking gave to the files of a release. It skips what the project may change,
// and entries that were last changed at since or earlier. since is called only if an entry has another mode.
func (s *Site) RestoreModes(release artifact.Release, says recipe.Recipe, list *manifest.Manifest,
	since func() time.Time) (
	done []Remoded, err error) {
	root, err := s.OpenSafely()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := root.OpenDir(s.Layout.Inside(s.LayoutOf(release.Project).Release(release.Dir())))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	m := modeRestorer{want: list.Modes(s.Comparison(says)), since: since}
	err = m.directory(dir, ".")
	return m.done, err
}

// modeRestorer holds the state of a RestoreModes call.
type modeRestorer struct {
	want  map[string]manifest.Mode
	since func() time.Time
	after *time.Time // the result of since; nil before the first call
	done  []Remoded
}

// directory restores the entries of a directory. It restores the mode of a subdirectory before its content, which may
// not be readable otherwise.
func (m *modeRestorer) directory(dir *walk.Dir, name string) error {
	names, err := dir.ReadDir()
	if err != nil {
		return err
	}
	for _, n := range names {
		full := path.Join(name, n)
		want, listed := m.want[full]
		if !listed {
			continue
		}
		st, err := dir.Lstat(n)
		if found, err := walk.Found(err); err != nil {
			return err
		} else if !found || (st.Mode&unix.S_IFMT == unix.S_IFDIR) != want.Directory || st.Mode&unix.S_IFMT == unix.S_IFLNK {
			continue
		}
		if err := m.restore(dir, n, full, want, st); err != nil {
			return err
		}
		if want.Directory {
			if err := m.below(dir, n, full); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *modeRestorer) below(dir *walk.Dir, n, full string) error {
	sub, err := dir.OpenDir(n)
	if err != nil {
		return err
	}
	defer sub.Close()
	return m.directory(sub, full)
}

// restore corrects the mode of one name. It relies on the time of the last status change (ctime), which only the kernel
// sets.
func (m *modeRestorer) restore(dir *walk.Dir, n, full string, want manifest.Mode, st unix.Stat_t) error {
	bits := st.Mode & 0o7777
	if want.Fits(bits) {
		return nil
	}
	if m.after == nil {
		after := m.since()
		m.after = &after
	}
	if !time.Unix(st.Ctim.Unix()).After(*m.after) {
		return nil
	}
	mode := fs.FileMode(want.Bits)
	if want.Directory && bits&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if err := dir.Chmod(n, mode); err != nil {
		return err
	}
	m.done = append(m.done, Remoded{Name: full, Was: bits, Mode: want.Bits})
	return nil
}
