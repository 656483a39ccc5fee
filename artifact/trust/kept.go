package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CheckKept looks whether the directory in which a publisher keeps what it has seen can be used: directories and files are
// what their names say, and the root is one. The error names the path on this machine that is damaged, and its cure: it says
// nothing about the store. A file that is not there is none, and other damaged metadata is read from the store again.
func CheckKept(dir string) error {
	for _, name := range []string{".", "projects", "roots", "pages"} {
		if err := keptAs(filepath.Join(dir, name), "directory", os.FileMode.IsDir); err != nil {
			return err
		}
	}
	for _, name := range []string{rootFile, pinFile, givenFile, timestampFile, snapshotFile, versionsFile, roleFile(targetsRole), ".lock"} {
		if err := keptAs(filepath.Join(dir, name), "file", os.FileMode.IsRegular); err != nil {
			return err
		}
	}
	roles, err := walk.Glob(filepath.Join(dir, "projects", "*.json"))
	if err != nil {
		return err
	}
	for _, file := range roles {
		if err := keptAs(file, "file", os.FileMode.IsRegular); err != nil {
			return err
		}
	}
	root := filepath.Join(dir, rootFile)
	data, found, err := walk.Read(root)
	if err != nil || !found {
		return err
	}
	if err := isRoot(data); err != nil {
		return moveAway(root, fmt.Errorf("%s, which this machine keeps, is damaged: %w", root, err))
	}
	return nil
}

// keptAs is the error of a path that is there and is something else.
func keptAs(path, kind string, is func(os.FileMode) bool) error {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && is(info.Mode()):
		return nil
	case err == nil:
		return moveAway(path, fmt.Errorf("%s, which this machine keeps, is no %s", path, kind))
	case !walk.Nowhere(err):
		return err
	}
	if named, err := walk.Named(path); err != nil || !named {
		if walk.Nowhere(err) {
			err = nil // a name below what is no directory
		}
		return err
	}
	return moveAway(path, fmt.Errorf("%s, which this machine keeps, is a link that leads nowhere", path))
}

func moveAway(path string, err error) error {
	return diag.WithHint(err, "it is of this machine, and says nothing about the store; move it away: mv %s %s.damaged; "+
		"it is made again from the root.json beside the keys (or --trust-root) and from the store", path, path)
}

// unreadKept is the error of reading what is kept.
func unreadKept(path string, err error) error {
	err = fmt.Errorf("reading what was seen of the store: %w", err)
	if errors.Is(err, walk.ErrNoFile) || walk.Nowhere(err) {
		return moveAway(path, err)
	}
	return err
}
