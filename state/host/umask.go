package host

import (
	"bufio"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// umask reads the process's umask without changing it, since setting it to read it would race with
// every other file being made.
func umask() fs.FileMode {
	f, err := os.Open("/proc/self/status")
	if err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "Umask:"); ok {
				if n, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32); err == nil {
					return fs.FileMode(n)
				}
			}
		}
	}
	mask := unix.Umask(0o022)
	unix.Umask(mask)
	return fs.FileMode(mask)
}
