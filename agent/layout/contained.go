package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Contained returns an error if a directory of the agent is behind a link that leads out of the tree, such as an
// absolute link, or a relative one with too many "..". States resolve such a link inside the tree, as a system that
// runs there would, and paths of this package do not. Contained checks each component of the path to such a directory,
// so that a tree is refused before a directory is created behind a link. The machine's own "/" contains everything.
func (l Layout) Contained() error {
	if !l.Relocated() {
		return nil
	}
	root, err := walk.Open(walk.Options{Dir: l.Root})
	if found, err := walk.Found(err); !found {
		return err
	}
	defer root.Close()
	dirs, err := l.writable()
	if err != nil {
		return err
	}
	var errs []error
	known := map[string]bool{} // false for a path that leads out
	for _, dir := range dirs {
		for _, part := range l.parts(dir) {
			inside, seen := known[part]
			if !seen {
				err := l.same(root, part)
				errs, inside = append(errs, err), err == nil
				known[part] = inside
			}
			if !inside {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// writable returns the directories in which the agent writes, and the links among the files that it keeps.
func (l Layout) writable() ([]string, error) {
	dirs := []string{l.State(), l.Trust(), filepath.Join(l.Trust(), "projects"), l.Journal(),
		filepath.Dir(l.ProjectJournal("_")), l.Configuration(), l.Projects(), l.Images()}
	kept, err := walk.Glob(filepath.Join(l.State(), "*"))
	if err != nil && !errors.Is(err, fs.ErrPermission) && !walk.Nowhere(err) { // opening it reports that
		return nil, err
	}
	projects, err := walk.Glob(filepath.Join(l.Projects(), "*"))
	if err != nil && !walk.Nowhere(err) {
		return nil, err
	}
	for _, path := range kept {
		info, err := os.Lstat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			dirs = append(dirs, path)
		}
	}
	for _, dir := range projects {
		if strings.HasPrefix(filepath.Base(dir), ".") {
			continue // copies of the ledger, and temporary files
		}
		p := Project{Dir: dir}
		dirs = append(dirs, p.Dir, p.Releases(), p.Archives(), p.Data(), p.Pillar())
	}
	return dirs, nil
}

// parts returns the paths from the root down to a path, which comes last.
func (l Layout) parts(path string) (all []string) {
	for inside := l.Inside(path); len(inside) > 1; inside = filepath.Dir(inside) {
		all = append([]string{l.Path(inside)}, all...)
	}
	return all
}

// same returns an error if a path leads to another directory than the same path inside the tree.
func (l Layout) same(root *walk.Root, dir string) error {
	var byName, inside unix.Stat_t
	nameErr := unix.Stat(dir, &byName)
	d, err := root.OpenDir(l.Inside(dir))
	if err == nil {
		// The descriptor works even if the user may not search the directory; "." in it would not.
		err = errors.Join(unix.Fstat(d.FD(), &inside), d.Close())
	}
	if absent(nameErr) && (absent(err) || errors.Is(nameErr, unix.ENOTDIR)) ||
		nameErr == nil && err == nil && byName.Dev == inside.Dev && byName.Ino == inside.Ino {
		return nil
	}
	if nameErr != nil && !absent(nameErr) || nameErr == nil && byName.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil // opening it reports that
	}
	return diag.Path.Hint(fmt.Errorf("%s is behind a link that leads out of %s", dir, l.Root),
		"make the link relative, with a target that is inside of %s (ln -sfn), so that it means the same wherever the "+
			"tree is mounted", l.Root)
}

func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
