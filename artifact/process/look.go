package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Look finds a program like exec.LookPath. If no directory of PATH has the program, the error is exec.ErrNotFound. If a
// directory could not be searched because the disk fails, or open files or memory are exhausted, it returns that error,
// which LookPath ignores.
func Look(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err == nil || strings.Contains(name, "/") || !errors.Is(err, exec.ErrNotFound) {
		return found, err
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, unread := LookIn("", dir, name); unread != nil {
			return "", unread
		}
	}
	return "", err
}

// LookIn reports whether a directory below a root has an executable file of this name.
func LookIn(root, dir, name string) (bool, error) {
	info, err := os.Stat(filepath.Join(root, dir, name))
	found, err := walk.Found(err)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP): // execvp(3) skips these
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for %s: %w", name, err)
	}
	return found && info.Mode().IsRegular() && info.Mode()&0o111 != 0, nil
}
