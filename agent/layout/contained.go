package layout

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Contained refuses a tree in which a directory of the agent lies behind a link that leads out of the tree, as an
// absolute link does: what converges follows such a link inside the tree, as a system that runs there would, and a path
// of this package would not. The machine's own "/" contains everything.
func (l Layout) Contained() error {
	if !l.Relocated() {
		return nil
	}
	root, err := walk.Open(walk.Options{Dir: l.Root})
	if found, err := walk.Found(err); !found {
		return err
	}
	defer root.Close()
	dirs := []string{l.State(), l.Trust(), filepath.Dir(l.Config()), l.Projects()}
	projects, err := walk.Glob(filepath.Join(l.Projects(), "*"))
	if err != nil {
		return err
	}
	for _, dir := range projects {
		if strings.HasPrefix(filepath.Base(dir), ".") {
			continue // copies of the ledger, and temporary files
		}
		p := Project{Dir: dir}
		dirs = append(dirs, p.Dir, p.Releases(), p.Archives(), p.Data(), p.Pillar())
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, l.same(root, dir))
	}
	return errors.Join(errs...)
}

// same refuses a directory that is another one by name than inside the tree.
func (l Layout) same(root *walk.Root, dir string) error {
	var byName, inside unix.Stat_t
	nameErr := unix.Stat(dir, &byName)
	d, err := root.OpenDir(l.Inside(dir))
	if err == nil {
		// The descriptor answers where the user may not search the directory, and "." in it would not.
		err = errors.Join(unix.Fstat(d.FD(), &inside), d.Close())
	}
	if absent(nameErr) && (absent(err) || errors.Is(nameErr, unix.ENOTDIR)) ||
		nameErr == nil && err == nil && byName.Dev == inside.Dev && byName.Ino == inside.Ino {
		return nil
	}
	if nameErr != nil && !absent(nameErr) || byName.Mode&unix.S_IFMT == unix.S_IFREG {
		return nil // opening it reports that
	}
	return diag.WithHint(fmt.Errorf("%s lies behind a link that leads out of %s", dir, l.Root),
		"make the link relative (ln -sfn, with a target that starts with ../), so that it means the same wherever the "+
			"tree is mounted")
}

func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
