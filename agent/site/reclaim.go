package site

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// This file separates code, which the agent reads or runs as root, from data, which a project's user may change.

// Reclaim gives a release's code back to root if it belongs to another user or others can write to it. If the release's
// own directory belongs to another user, Reclaim does so with everything that is not writable by the recipe: earlier
// agents gave releases with a .salt directory to their user. changed is the number of files and directories that it
// changed.
func (s *Site) Reclaim(release artifact.Release, says recipe.Recipe, list *manifest.Manifest) (changed int, err error) {
	trusted := s.TrustedUsers()
	if trusted == nil {
		return 0, nil
	}
	root, err := s.OpenSafely()
	if err != nil {
		return 0, err
	}
	defer root.Close()
	p := s.LayoutOf(release.Project)
	c := reclaimer{trusted: trusted, code: says.Code(), writable: says.Writable, sizes: sizes(list)}
	for _, dir := range []string{s.Layout.Projects(), p.Dir, p.Releases()} {
		if err := c.above(root, s.Layout.Inside(dir)); err != nil {
			return 0, err
		}
	}
	if err := closeArchives(root, s.Layout.Inside(p.Dir)); err != nil {
		return 0, err
	}
	dir, err := root.OpenDir(s.Layout.Inside(p.Release(release.Dir())))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	st, err := dir.Lstat(".")
	if err != nil {
		return 0, err
	}
	c.whole = !slices.Contains(trusted, st.Uid)
	err = c.directory(dir, ".")
	return c.changed, err
}

// closeArchives gives archives the mode 0700, since the files in them keep the owners and modes that they had.
func closeArchives(root *walk.Root, project string) error {
	dir, err := root.OpenDir(project)
	if err != nil {
		return err
	}
	defer dir.Close()
	st, err := dir.Lstat("archives")
	if found, err := walk.Found(err); !found || st.Mode&0o7777 == 0o700 || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err
	}
	if err := dir.Chmod("archives", 0o700); !errors.Is(err, unix.EROFS) {
		return err
	}
	return nil // the archive step reports it
}

// sizes returns the sizes of the files in list by name; nil without a list.
func sizes(list *manifest.Manifest) map[string]int64 {
	if list == nil {
		return nil
	}
	all := make(map[string]int64, len(list.Entries))
	for _, e := range list.Entries {
		if e.Kind.Regular() {
			all[e.Name] = e.Size
		}
	}
	return all
}

// reclaimer gives files back to root.
type reclaimer struct {
	trusted        []uint32
	code, writable []string
	sizes          map[string]int64
	whole          bool // reclaim everything that is not writable, and not only code
	changed        int
}

// above reclaims a directory above a release: a user who owns one can replace a release by another.
func (c *reclaimer) above(root *walk.Root, name string) error {
	dir, err := root.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(c.own(dir), dir.Close())
}

// own reclaims a directory without its content.
func (c *reclaimer) own(dir *walk.Dir) error {
	st, err := dir.Lstat(".")
	if err != nil {
		return err
	}
	foreign := !slices.Contains(c.trusted, st.Uid)
	open := st.Mode&0o002 != 0 || st.Mode&0o020 != 0 && st.Gid != 0
	if foreign {
		err = dir.Chown(".", 0, 0)
	}
	if open && err == nil {
		err = dir.Chmod(".", fs.FileMode(st.Mode&0o755))
	}
	if foreign || open {
		c.changed++
	}
	return err
}

// directory reclaims a directory, and then its content. In this order no entry can be exchanged in between.
func (c *reclaimer) directory(dir *walk.Dir, name string) error {
	if err := c.own(dir); err != nil {
		return err
	}
	names, err := dir.ReadDir()
	if err != nil {
		return err
	}
	for _, n := range names {
		full := path.Join(name, n)
		isCode := recipe.Within(c.code, full)
		if recipe.Within(c.writable, full) || !isCode && !c.whole && !recipe.IsCode(c.code, full) {
			continue
		}
		if err := c.entry(dir, n, full, isCode); err != nil {
			return err
		}
	}
	return nil
}

func (c *reclaimer) entry(dir *walk.Dir, n, full string, isCode bool) error {
	st, err := dir.Lstat(n)
	if found, err := walk.Found(err); !found {
		return err
	}
	foreign := !slices.Contains(c.trusted, st.Uid)
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		sub, err := dir.OpenDir(n)
		if err != nil {
			return err
		}
		return errors.Join(c.directory(sub, full), sub.Close())
	case syscall.S_IFREG:
		if !foreign && st.Mode&0o022 == 0 {
			return nil
		}
		c.changed++
		if isCode || st.Nlink > 1 {
			return c.replace(dir, n, full, &st)
		}
		return errors.Join(dir.Chown(n, 0, 0), dir.Chmod(n, fs.FileMode(st.Mode&0o555)))
	case syscall.S_IFLNK:
		if foreign {
			c.changed++
			return dir.Chown(n, 0, 0)
		}
	}
	return nil
}

// replace replaces a file by a copy: its owner may have it open for writing, and it may have other hard links. A file
// whose size is not that of the list stays: the comparison of its content refuses it.
func (c *reclaimer) replace(dir *walk.Dir, n, full string, st *unix.Stat_t) error {
	size, listed := c.sizes[full]
	if c.sizes != nil && (!listed || size != st.Size) {
		return nil
	}
	if c.sizes == nil && (st.Nlink > 1 || st.Size > maxUnlisted) {
		return errUnlisted
	}
	from, err := dir.Open(n)
	if err != nil {
		return err
	}
	err = dir.Create(n, walk.New{Mode: fs.FileMode(st.Mode & 0o555), UID: 0, GID: 0}, copyOf(from, st.Size))
	return errors.Join(err, from.Close())
}

// maxUnlisted bounds the size of a copy of code without a list.
const maxUnlisted = 64 << 20

var errUnlisted = errors.New(
	"the project's user put a file with several names, or one beyond 64 MiB, in the place of code, and no list of the " +
		"tree says what was there: push or deploy it again")

// copyOf returns a function that copies at most size bytes of a file.
func copyOf(from *os.File, size int64) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := io.Copy(to, io.LimitReader(from, size))
		return err
	}
}
