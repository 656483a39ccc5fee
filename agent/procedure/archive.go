package procedure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// NoRoom says that an archive would not fit, before anything of it was written.
type NoRoom struct {
	Dir        string
	Need, Free int64 // bytes
}

func (n *NoRoom) Error() string {
	return fmt.Sprintf("the archive would take %s, and %s has %s free", diag.Size(n.Need), n.Dir, diag.Size(n.Free))
}

// Hint says what to do.
func (n *NoRoom) Hint() string {
	return "make room, or lower keep.archives and keep.failed in agent.yaml; nothing on the host was changed"
}

// entry is what a file costs beside its content, roughly.
const entry = 4 << 10

// Size is what a tree takes on disk.
func Size(tree string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(tree, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum += entry
		if info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum, err
}

// Fits reports, as a *NoRoom, that a tree does not fit beside a directory. Some is left free, since
// a full disk stops more than an archive.
func Fits(tree, dir string) error {
	need, err := Size(tree)
	if err != nil {
		return fmt.Errorf("measuring %s: %w", tree, err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("measuring %s: %w", dir, err)
	}
	free := int64(disk.Bavail) * disk.Bsize
	if need+need/20 > free {
		return &NoRoom{Dir: dir, Need: need, Free: free}
	}
	return nil
}

// Copy archives a tree: everything in it with modes, owners where that is allowed, and times. Nothing
// is linked to the original. The copy gets its name when it is complete.
func Copy(ctx context.Context, tree, to string) (err error) {
	if err := durable.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return unwritable(to, err)
	}
	temp, err := durable.TempDir(filepath.Dir(to))
	if err != nil {
		return unwritable(to, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	c := copier{from: tree, to: temp}
	err = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		return c.copy(path, d)
	})
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		return fmt.Errorf("archiving %s: %w", tree, err)
	}
	return durable.Install(temp, to)
}

func unwritable(to string, err error) error {
	return diag.WithHint(fmt.Errorf("archiving to %s: %w", to, err), "the archives directory must be writable for root; see who owns it and how it is mounted")
}

// copier copies one tree.
type copier struct {
	from, to string
	dirs     []string // paths whose modes and times come last
}

func (c *copier) copy(path string, d fs.DirEntry) error {
	rel, err := filepath.Rel(c.from, path)
	if err != nil {
		return err
	}
	target := filepath.Join(c.to, rel)
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		c.dirs = append(c.dirs, path)
		if rel == "." {
			return nil
		}
		return os.Mkdir(target, 0o700)
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return errors.Join(os.Symlink(to, target), own(target, info))
	case info.Mode().IsRegular():
		return errors.Join(content(path, target), describe(target, info))
	}
	return nil // sockets, pipes and devices are no content
}

func content(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// finish gives directories, inner ones first, what writing into them would have changed.
func (c *copier) finish() error {
	for i := len(c.dirs) - 1; i >= 0; i-- {
		info, err := os.Stat(c.dirs[i])
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.from, c.dirs[i])
		if err != nil {
			return err
		}
		if err := describe(filepath.Join(c.to, rel), info); err != nil {
			return err
		}
	}
	return nil
}

func describe(path string, info fs.FileInfo) error {
	return errors.Join(own(path, info), os.Chmod(path, info.Mode()), os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// own gives a file its owner; only root may, and for others it stays theirs.
func own(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(stat.Uid), int(stat.Gid))
}
