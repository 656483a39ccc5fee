package grains

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A tree is a directory that is laid out like a host; "" is the machine itself. What is not there
// reads as empty: a fact that cannot be read is left out, never an error.
type tree string

// maxFile bounds what is read of a file that only claims to be small.
const maxFile = 1 << 20

func (t tree) path(name string) string {
	if t == "" {
		t = "/"
	}
	return filepath.Join(string(t), name)
}

// read returns a file's content.
func (t tree) read(name string) string { return t.head(name, maxFile) }

// head returns the start of a file. Opening does not block, since the name may belong to a pipe.
func (t tree) head(name string, size int64) string {
	f, err := os.OpenFile(t.path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return ""
	}
	return string(data)
}

// line returns a file of one line without the white space around it.
func (t tree) line(name string) string { return strings.TrimSpace(t.read(name)) }

func (t tree) exists(name string) bool {
	_, err := os.Lstat(t.path(name))
	return err == nil
}

// program reports whether a program is installed where the system keeps its own.
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
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// link returns where a symbolic link points, or "".
func (t tree) link(name string) string {
	target, _ := os.Readlink(t.path(name))
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
