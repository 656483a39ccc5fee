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

// RestoreModes gives what was unpacked of a release the modes again that unpacking gave. It leaves alone what its
// project may change, and what got its mode before since, which is asked only if something has another mode.
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

// modeRestorer is the state of a RestoreModes.
type modeRestorer struct {
	want  map[string]manifest.Mode
	since func() time.Time
	after *time.Time // what since says, once it was asked
	done  []Remoded
}

// directory restores what is in a directory. The mode of a directory comes before what is in it, which could not be
// looked at without.
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

// restore puts the mode of one name right. The kernel alone sets the time of its last change.
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
