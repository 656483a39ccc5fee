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

// Look finds a program as exec.LookPath does. A program that no directory of PATH has is exec.ErrNotFound; a directory
// that could not be searched because the disk fails, or the process lacks files or memory, is that error, which LookPath
// takes for a program that is not there.
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

// LookIn reports whether a directory below a root has a program that can be executed.
func LookIn(root, dir, name string) (bool, error) {
	info, err := os.Stat(filepath.Join(root, dir, name))
	found, err := walk.Found(err)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP): // execvp(3) passes these over
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for %s: %w", name, err)
	}
	return found && info.Mode().IsRegular() && info.Mode()&0o111 != 0, nil
}
