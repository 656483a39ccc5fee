package attack_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// writableDirectories are directories in which operations may write. The tests still check what users can read there.
var writableDirectories = []string{"home/ann", "var", "srv", "opt", "run", "proc", "usr", "dev", "tmp", "etc/corpus"}

// snapshot describes each file of a world that no operation may change, by its path.
func (w *world) snapshot() map[string]string {
	w.Helper()
	all := map[string]string{}
	for _, top := range []string{w.dir, w.outside} {
		w.must(filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(w.dir, p)
			if err != nil {
				return err
			}
			if slices.Contains(writableDirectories, rel) {
				return fs.SkipDir
			}
			all[rel], err = describe(p)
			return err
		}))
	}
	return all
}

func describe(p string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(p, &st); err != nil {
		return "", err
	}
	description := fmt.Sprintf("mode %o, owner %d:%d", st.Mode, st.Uid, st.Gid)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := os.Readlink(p)
		return description + ", link to " + target, err
	case unix.S_IFREG:
		data, err := os.ReadFile(p)
		sum := sha256.Sum256(data)
		return fmt.Sprintf("%s, %d bytes, %x", description, len(data), sum[:4]), err
	}
	return description, nil
}

// breaks lists the violations that an operation caused.
func (w *world) breaks(o outcome, except ...string) []string {
	w.Helper()
	var found []string
	if o.hung {
		found = append(found, fmt.Sprintf("it waited until it was killed, after %v:\n%s", runTimeout, o.out))
	}
	if strings.Contains(o.out, canary) {
		found = append(found, "what it printed holds the content of a victim")
	}
	found = append(found, w.changed(except)...)
	found = append(found, w.readable()...)
	return append(found, w.foreign()...)
}

// changed compares the world with its snapshot.
func (w *world) changed(except []string) []string {
	w.Helper()
	after := w.snapshot()
	names := maps.Clone(after)
	maps.Copy(names, w.before)
	var found []string
	for _, p := range slices.Sorted(maps.Keys(names)) {
		was, is := w.before[p], after[p]
		switch {
		case was == is, slices.ContainsFunc(except, func(e string) bool { return p == e || strings.HasPrefix(p, e+"/") }):
		case was == "":
			found = append(found, fmt.Sprintf("/%s was made: %s", p, is))
		case is == "":
			found = append(found, fmt.Sprintf("/%s was removed", p))
		default:
			found = append(found, fmt.Sprintf("/%s changed: %s, was %s", p, is, was))
		}
	}
	return found
}

// readable lists the content of the victims that the attacker and a third user can read.
func (w *world) readable() []string {
	w.Helper()
	var found []string
	for _, uid := range []uint32{ann, carol} {
		out, err := w.as(uid, asReader, w.dir)
		if err != nil {
			w.Fatalf("reading as user %d: %v", uid, err)
		}
		for line := range strings.Lines(out) {
			found = append(found, fmt.Sprintf("user %d can read %s", uid, strings.TrimSpace(strings.TrimPrefix(line, w.dir))))
		}
	}
	return found
}

// readEverything prints the files below a directory that this user can read and that hold a canary.
func readEverything(dir string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // the user cannot read it, so it is safe
		}
		if holds(p) {
			fmt.Println(p)
		}
		return nil
	})
}

func holds(p string) bool {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, 4<<20))
	return bytes.Contains(data, []byte(canary))
}

// annsOwn are the paths that may belong to ann: her home, copies that keep the owner, and writable paths of projects.
var annsOwn = regexp.MustCompile(
	`^(home/ann|srv/out|var/cache/corpus/file_backup|srv/projects/[^/]+/(data|(releases/[^/]+|` +
		`archives/[^/]+/project[^/]*)/var))(/|$)`)

// foreign lists files of ann's outside her home, files written by programs of hers that ran as root, and a full disk.
func (w *world) foreign() []string {
	w.Helper()
	var found []string
	var blocks int64
	err := filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		rel, err := filepath.Rel(w.dir, p)
		if err != nil {
			return err
		}
		if slices.Contains([]string{"opt", "proc", "usr", "dev"}, rel) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if info.Mode().IsRegular() && st.Nlink == 1 {
			blocks += st.Blocks
		}
		if st.Uid == ann && !annsOwn.MatchString(rel) {
			found = append(found, "/"+rel+" belongs to ann")
		}
		if info.Mode().IsRegular() && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 && st.Uid != ann && !rootsContent(p) {
			found = append(found, "/"+rel+" holds what ann wrote and runs as another user")
		}
		if st.Uid == 0 && strings.HasPrefix(d.Name(), "pwned") {
			found = append(found, "a program of ann's ran as root: /"+rel)
		}
		return nil
	})
	w.must(err)
	if blocks*512 > 512<<20 {
		found = append(found, fmt.Sprintf("the disk holds %d MiB more than before", blocks*512>>20))
	}
	return found
}

// rootsContent reports whether the content of a file is what a state writes, without content of ann's.
func rootsContent(p string) bool {
	f, err := os.Open(p)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 100))
	return err == nil && slices.Contains([]string{"new\n", "from the tree\n"}, string(data))
}

func owner(info fs.FileInfo) int {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(st.Uid)
}
