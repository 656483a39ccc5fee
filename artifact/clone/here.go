package clone

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CheckHere is like Check, for a process of root that is about to run git in a directory of this machine. It returns
// nil for other users, and for clones that root has named in git's setting safe.directory.
func CheckHere(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	r, err := walk.Open(walk.Options{Safe: true})
	if err != nil {
		return err
	}
	defer r.Close()
	err = Check(r, dir, As{Home: os.Getenv("HOME")})
	var unsafe *walk.UnsafeError
	if !errors.As(err, &unsafe) {
		return err
	}
	if trusted(r, unsafe.Path) {
		return nil
	}
	return diag.Exposed.Hint(err, "%s; where no other user matters, such as in a container of CI: git config --global "+
		"--add safe.directory %s", unsafe.Hint(), unsafe.Path)
}

// trusted reports whether root's own git configuration names a directory as safe.
func trusted(r *walk.Root, dir string) bool {
	found := false
	for _, file := range []string{"/etc/gitconfig", os.Getenv("HOME") + "/.config/git/config",
		os.Getenv("HOME") + "/.gitconfig"} {
		text, err := check{root: r}.read(file)
		if err != nil || r.CheckRootOnly(file) != nil {
			continue
		}
		for _, s := range settings(text) {
			if s.section != "safe" || s.key != "directory" {
				continue
			}
			above, all := strings.CutSuffix(s.value, "*")
			found = s.value != "" && (found || s.value == dir || all && strings.HasPrefix(dir, above))
		}
	}
	return found
}
