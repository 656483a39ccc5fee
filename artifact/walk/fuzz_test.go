package walk_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// dice returns choices from the bytes of an input; after the end it returns zeros.
type dice []byte

func (d *dice) pick(n int) int {
	if len(*d) == 0 {
		return 0
	}
	c := int((*d)[0])
	*d = (*d)[1:]
	return c % n
}

// FuzzWalk makes a tree from an input, with links and files of several users, and opens paths in it: all roots of one
// kind must find the same, and nothing outside of the tree.
func FuzzWalk(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz0123456789"))
	f.Add([]byte("\x02\x00\x01\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\xff\xfe\xfd\xfc"))
	memory := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && unix.Access("/dev/shm", unix.W_OK) == nil {
		memory = "/dev/shm"
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		top, err := os.MkdirTemp(memory, "walk-fuzz-")
		do(t, err)
		defer func() { _ = os.RemoveAll(top) }()
		root := filepath.Join(top, "root")
		do(t, os.Mkdir(root, 0o755))
		do(t, os.WriteFile(filepath.Join(top, "a"), []byte("outside"), 0o600))
		d := dice(input)
		grow(&d, root)
		inside := map[string]bool{}
		do(t, filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
			var st unix.Stat_t
			if err == nil && unix.Lstat(p, &st) == nil {
				inside[fmt.Sprint(st.Dev, st.Ino)] = true
			}
			return nil
		}))
		for range 8 {
			p := "/" + word(&d) + "/" + word(&d) + "/" + word(&d)
			flags := []int{unix.O_PATH, unix.O_PATH | unix.O_NOFOLLOW, unix.O_RDONLY | unix.O_NONBLOCK,
				unix.O_RDONLY | unix.O_DIRECTORY}[d.pick(4)]
			for _, safe := range []bool{false, true} {
				agree(t, root, p, flags, safe, inside)
			}
		}
	})
}

// agree compares the results of roots of one kind for a path.
func agree(t *testing.T, root, p string, flags int, safe bool, inside map[string]bool) {
	t.Helper()
	kernel, checked := open(t, walk.Options{Safe: safe}, root), open(t, walk.Options{Safe: safe, Checked: true}, root)
	want := identity(kernel, p, flags)
	for how, r := range map[string]*walk.Root{"checked": checked,
		"anchored": kernel.Anchored([]string{"/a", "/b/a", "/c"})} {
		if got := identity(r, p, flags); got != want {
			t.Errorf("%s with flags %#x, safe %v: the kernel finds %s, the %s walk %s", p, flags, safe, want, how, got)
		}
	}
	if strings.Trim(want, "0123456789 ") == "" && !inside[want] {
		t.Errorf("%s resolves to a path outside of the root", p)
	}
}

func word(d *dice) string {
	words := []string{"a", "b", "c", "..", ".", "/", "d/", "a/b", "../a", "/a", "/b/..", "c/../..", "//a//b/"}
	return words[d.pick(len(words))]
}

// grow makes up to 16 names below a directory.
func grow(d *dice, root string) {
	for range 16 {
		p := filepath.Join(root, filepath.Clean("/"+word(d)+"/"+word(d)))
		_ = os.MkdirAll(filepath.Dir(p), 0o755)
		switch d.pick(5) {
		case 0:
			_ = os.Mkdir(p, []os.FileMode{0o755, 0o777, 0o775}[d.pick(3)])
		case 1:
			_ = os.WriteFile(p, nil, 0o644)
		case 2:
			_ = os.Link(filepath.Join(root, "a"), p)
		default:
			_ = os.Symlink(word(d)+strings.TrimPrefix(word(d), "/"), p)
		}
		if owner := []int{0, 0, ann, bob}[d.pick(4)]; owner != 0 && os.Geteuid() == 0 && p != root {
			_ = os.Lchown(p, owner, owner)
		}
	}
}
