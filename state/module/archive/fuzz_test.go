package archive_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// choices makes choices from the bytes of a fuzz input. When it has none left, it chooses 0.
type choices []byte

func (d *choices) pick(n int) int {
	if len(*d) == 0 {
		return 0
	}
	c := int((*d)[0])
	*d = (*d)[1:]
	return c % n
}

func (d *choices) of(words ...string) string { return words[d.pick(len(words))] }

// items returns entries that the input chooses, from few names so that they collide.
func (d *choices) items() (all []item) {
	for len(*d) > 0 && len(all) < 24 {
		i := item{name: d.of("a", "b", "a/b", "a/b/c", "./a", "d/", "d/x", "f", "link", "link/x", "up", "up/cron.d/x",
			"../x", "a/../../x", "/etc/x", "") + d.of("", "", "", "/", "/y")}
		switch d.pick(6) {
		case 0:
			i.link = d.of("/etc/cron.d", "../etc", "a", "a/b", ".", "a/..", "link/..", "d/x/../..", "/opt/a", "/opt/a/..",
				"..", "link", "d/x", "../../etc/cron.d/job", "")
		case 1:
			i.link, i.hard = d.of("a", "f", "link/job", "/etc/cron.d/job", "../etc/cron.d/job", "d/x", "up/cron.d/job"), true
		case 2:
			i.mode = []int64{0o4755, 0o2755, 0o1777, 0, 0o7777}[d.pick(5)]
		case 3:
			i.kind = "01234567xgSLK"[d.pick(13)]
		default:
			i.text = d.of("", "new")
		}
		all = append(all, i)
	}
	return all
}

// arena is a host, on a tmpfs if possible, with an archive and a target directory.
type arena struct {
	dir  string
	host *host.Host
}

func newArena(f *testing.F) *arena {
	f.Helper()
	memory := ""
	if unix.Access("/dev/shm", unix.W_OK) == nil {
		memory = "/dev/shm"
	}
	dir, err := os.MkdirTemp(memory, "archive-fuzz-")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"srv", "etc/cron.d", "tmp"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "etc/cron.d/job"), []byte("root's"), 0o600),
		os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte("root:x:0:0::/:/bin/sh\n"), 0o644))
	h, opened := machine.New(host.Options{Root: dir})
	if err := errors.Join(err, opened); err != nil {
		f.Fatal(err)
	}
	return &arena{dir, h}
}

// reset writes the archive, and a target with files and links as earlier runs may have left them.
func (a *arena) reset(t *testing.T, data []byte) {
	t.Helper()
	opt := filepath.Join(a.dir, "opt")
	_ = filepath.WalkDir(opt, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(p, 0o700)
		}
		return err
	})
	err := errors.Join(os.RemoveAll(opt), os.MkdirAll(filepath.Join(opt, "d"), 0o755),
		os.WriteFile(filepath.Join(opt, "f"), []byte("old"), 0o644),
		os.Symlink("/etc/cron.d", filepath.Join(opt, "link")), os.Symlink("../etc", filepath.Join(opt, "up")),
		os.WriteFile(filepath.Join(a.dir, "srv/a.tar"), data, 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// outside returns the mode, owner and content of everything outside the target.
func (a *arena) outside(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(a.dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || p == a.dir:
			return err
		case p == filepath.Join(a.dir, "opt"):
			return fs.SkipDir
		}
		var st unix.Stat_t
		var content []byte
		if err = unix.Lstat(p, &st); err == nil && d.Type().IsRegular() {
			content, err = os.ReadFile(p)
		}
		links := st.Nlink
		if d.IsDir() {
			links = 0
		}
		all[strings.TrimPrefix(p, a.dir)] = fmt.Sprintf("%o %d:%d %d %x", st.Mode, st.Uid, st.Gid, links,
			sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// contained fails the test if an extracted link leads out of the target.
func (a *arena) contained(t *testing.T) {
	t.Helper()
	opt := filepath.Join(a.dir, "opt")
	for name, target := range map[string]string{"link": "/etc/cron.d", "up": "../etc"} {
		if to, err := os.Readlink(filepath.Join(opt, name)); err == nil && to == target {
			_ = os.Remove(filepath.Join(opt, name)) // it existed before
		}
	}
	_ = filepath.WalkDir(opt, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			name := strings.TrimPrefix(p, a.dir)
			if to, err := a.host.Files.Resolve(name); err == nil && to != "/opt" && !strings.HasPrefix(to, "/opt/") {
				t.Errorf("the link %s leads to %s", name, to)
			}
		}
		return nil
	})
}

// FuzzExtracting checks that archive.extracted neither panics nor writes outside of its target, for all contents of the
// archive and of the target. The first byte of an input chooses the arguments. The rest is an archive or
// chooses the entries of one.
func FuzzExtracting(f *testing.F) {
	for how, data := range map[byte][]byte{0: tarOf(app()...), 1: zipOf(app()...), 2: zipped(dotted()),
		4: []byte("abcdefghijklmnopqrstuvwxyz0123456789"), 5: []byte("zyxwvutsrqponmlkjihgfedcba9876543210")} {
		f.Add(append([]byte{how}, data...))
		f.Add(append([]byte{how | 0x38}, data...))
	}
	a := newArena(f)
	f.Fuzz(func(t *testing.T, input []byte) {
		d := choices(input)
		how := d.pick(256)
		data, format := []byte(d), "tar"
		if items := d.items(); how&4 != 0 {
			data = tarOf(items...)
			if how&1 != 0 {
				data = zipOf(items...)
			}
		}
		if how&1 != 0 {
			format = "zip"
		}
		a.reset(t, data)
		before := a.outside(t)
		_, _ = extraction(t, a.host, context.Background(), "archive_format", format, "force", how&8 != 0,
			"overwrite", how&16 != 0, "clean", how&32 != 0 && how&64 == 0, "clean_parent", how&96 == 96,
			"max_entries", 64, "max_bytes", 1<<20, "max_depth", 8, "max_ratio", 100)
		a.contained(t)
		after := a.outside(t)
		for p := range after {
			if before[p] == "" {
				t.Errorf("%s was created", p)
			}
		}
		for p, was := range before {
			if after[p] != was {
				t.Errorf("%s was %s and is %s", p, was, after[p])
			}
		}
	})
}
