package grains

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// A tree is a directory with the layout of a host; "" is the machine itself. A file that does not exist, or may not be
// read, is treated as empty: an unknown fact is left out. An error of the machine, which makes facts wrong, is
// recorded.
type tree struct {
	dir           string
	machineErrors *walk.MachineErrors
}

// maxFile is the maximum number of bytes that are read of a file.
const maxFile = 1 << 20

func (t tree) path(name string) string {
	if t.dir == "" {
		return filepath.Join("/", name)
	}
	return filepath.Join(t.dir, name)
}

// failed records an error of a name in the tree. It reports whether there was one.
func (t tree) failed(name string, err error) bool {
	return t.machineErrors.Note(filepath.Join("/", name), err) != nil
}

// read returns a file's content.
func (t tree) read(name string) string { return t.head(name, maxFile) }

// head returns the start of a file. Opening does not block, since the name may belong to a pipe.
func (t tree) head(name string, size int64) string {
	f, err := os.OpenFile(t.path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if t.failed(name, err) {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, size))
	if t.failed(name, err) {
		return ""
	}
	return string(data)
}

// line returns a file of one line without the white space around it.
func (t tree) line(name string) string { return strings.TrimSpace(t.read(name)) }

func (t tree) exists(name string) bool {
	_, err := os.Lstat(t.path(name))
	return !t.failed(name, err)
}

// program reports whether a program is installed in a directory of system programs.
func (t tree) program(name string) bool {
	for _, dir := range []string{"usr/bin", "bin", "usr/sbin", "sbin"} {
		if t.exists(filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}

// names lists a directory in order.
func (t tree) names(dir string) []string {
	entries, err := os.ReadDir(t.path(dir))
	if t.failed(dir, err) {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// link returns the target of a symbolic link, or "".
func (t tree) link(name string) string {
	target, err := os.Readlink(t.path(name))
	if t.failed(name, err) {
		return ""
	}
	return target
}

// pairs yields the two sides of every line that has the separator, without white space around them.
func pairs(text, separator string) func(yield func(key, val string) bool) {
	return func(yield func(key, val string) bool) {
		for line := range strings.Lines(text) {
			key, val, ok := strings.Cut(line, separator)
			if ok && !yield(strings.TrimSpace(key), strings.TrimSpace(val)) {
				return
			}
		}
	}
}
