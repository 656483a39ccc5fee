package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPathsGoThroughTheWalker checks that the source makes no calls that open, make, change or remove a path by its
// name: root works in directories of other users, where a name may lead elsewhere at any moment. Package walk, and
// state/host with it, use directory descriptors. Each exception is listed here with its reason.
func TestPathsGoThroughTheWalker(t *testing.T) {
	allowed := map[string]string{
		"state/host/binding/binding.go":     "/run/corpus-guest-mounts, which root alone changes",
		"state/host/binding/users.go":       "/proc",
		"state/host/processes/sockets.go":   "/proc",
		"state/host/processes/processes.go": "/proc",
		"state/host/packages/client.go":     "/proc",
		"state/host/packages/lock.go":       "/proc",
		"state/host/terminal/terminal.go":   "the kernel's own /dev/ptmx and /dev/pts",
		"state/ahead/ahead.go":              "/var/tmp, for files without a name",
		"state/host/unsynced.go":            "a directory to sync the filesystem of; it is opened for nothing else",
		"state/host/directory.go":           "the working directory of a thread that ends: back to /",
		"state/host/temp.go":                "/proc/self/fd and the umask in /proc/self/status",
		"state/host/tree.go":                "/proc/self/fd",
		"state/host/tree_change.go":         "/proc/self/fd of a place that was opened",
		"state/host/attributes.go":          "/proc/self/fd of a place that was opened",
	}
	names := `Open|OpenFile|OpenRoot|OpenInRoot|Create|CreateTemp|MkdirTemp|Mkdir|MkdirAll|ReadFile|WriteFile|Remove|` +
		`RemoveAll|Rename|Chmod|Chown|Lchown|` +
		`Chtimes|Lutimes|UtimesNano|Link|Symlink|Readlink|Stat|Lstat|ReadDir|Truncate|DirFS|CopyFS|Chdir|Chroot|Unlink|` +
		`Rmdir|Mknod|Mkfifo|Access|Statfs|Mount|` +
		`Setxattr|Lsetxattr|Getxattr|Lgetxattr|Listxattr|Llistxattr|Removexattr|Lremovexattr`
	byName := regexp.MustCompile(`\b(os|unix|syscall)\.(` + names +
		`)\(|\bfilepath\.(Walk|WalkDir|Glob|EvalSymlinks)\(|\bwalk\.(Exists|Named|Directory|Read|Glob)\(`)
	forTests := regexp.MustCompile(`/(hosttest|statetest|clienttest)/`) // packages that only tests import
	used := map[string]bool{}
	for _, top := range []string{"state"} {
		err := filepath.WalkDir("../"+top, func(path string, d os.DirEntry, err error) error {
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				forTests.MatchString(name) {
				return err
			}
			data, err := os.ReadFile(path)
			for i, line := range strings.Split(string(data), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if !byName.MatchString(code) {
					continue
				}
				if used[name] = true; allowed[name] == "" {
					t.Errorf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	for name := range allowed {
		if !used[name] {
			t.Errorf("the exception for %s is not needed any more", name)
		}
	}
}
