package dir_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return creating(t.TempDir()) })
}

// creating returns a store whose directory is created by the first Put.
func creating(path string) *dir.Store {
	s := dir.New(path)
	s.Create = true
	return s
}

func put(ctx context.Context, s store.Store, key, text string, cond store.Condition) (store.Info, error) {
	return s.Put(ctx, key, strings.NewReader(text), int64(len(text)), cond)
}

func mustPut(t *testing.T, s store.Store, key, text string) store.Info {
	t.Helper()
	info, err := put(t.Context(), s, key, text, store.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func read(ctx context.Context, s store.Store, key string) (string, store.Info, error) {
	body, info, err := s.Get(ctx, key, 0)
	if err != nil {
		return "", info, err
	}
	data, err := io.ReadAll(body)
	return string(data), info, errors.Join(err, body.Close())
}

func keys(t *testing.T, s store.Store) string {
	t.Helper()
	all := []string{}
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info.Key)
	}
	return strings.Join(all, " ")
}

func TestMissingDirectory(t *testing.T) {
	root := filepath.Join(t.TempDir(), "not", "there")
	s := dir.New(root)
	_, _, getErr := s.Get(t.Context(), "key", 0)
	var listErr error
	for _, listErr = range s.List(t.Context(), "") {
		break
	}
	_, putErr := put(t.Context(), s, "key", "x", store.Condition{})
	for what, err := range map[string]error{"Get": getErr, "List": listErr,
		"Delete": s.Delete(t.Context(), "key"), "Put": putErr} {
		if !errors.Is(err, store.ErrNoStore) || !errors.Is(err, store.ErrUnreachable) ||
			!strings.Contains(diag.HintOf(err), root) {
			t.Errorf("%s: %v, hint %q", what, err, diag.HintOf(err))
		}
	}
	if _, err := os.Stat(filepath.Dir(root)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused write left directories: %v", err)
	}
	if _, err := put(store.Creating(t.Context()), s, "deep/down/key", "x", store.Condition{}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "key", "y")
	if got := keys(t, s); got != "deep/down/key key" {
		t.Errorf("after the store was set up: %s", got)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.New(file).Get(t.Context(), "key", 0); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("a file for a directory: %v", err)
	}
}

// TestAWriteDoesNotFillAMountPoint writes to an empty directory, like the mount point of a share that is not mounted.
func TestAWriteDoesNotFillAMountPoint(t *testing.T) {
	root := t.TempDir()
	for _, there := range []string{"", "lost+found"} {
		if err := os.MkdirAll(filepath.Join(root, there), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := put(t.Context(), dir.New(root), "reports/app/h/1.json", "x", store.Condition{})
		if !errors.Is(err, store.ErrNoStore) || !strings.Contains(err.Error(), "is empty") ||
			!strings.Contains(diag.HintOf(err), "findmnt --target "+root) {
			t.Errorf("with %q: %v, hint %q", there, err, diag.HintOf(err))
		}
	}
	if _, err := os.Stat(filepath.Join(root, "reports")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused write left directories: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "timestamp.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	mustPut(t, dir.New(root), "reports/app/h/1.json", "x")
}

// TestTreeOnDisk checks the tree for other programs: a readable file for each key, and nothing else that matters.
func TestTreeOnDisk(t *testing.T) {
	root := t.TempDir()
	s := creating(root)
	mustPut(t, s, "deploy/app/1.0 (final)+b.tar.zst", "artifact")
	path := filepath.Join(root, "deploy/app/1.0 (final)+b.tar.zst")
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "artifact" {
		t.Errorf("%q, %v", data, err)
	}
	if err := os.WriteFile(filepath.Join(root, "copied"), []byte("by rsync"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, info, err := read(t.Context(), s, "copied"); got != "by rsync" || info.ETag == "" || err != nil {
		t.Errorf("%q, %+v, %v", got, info, err)
	}
}

func TestKeysCannotLeaveTheDirectory(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"dir": outside, "file": filepath.Join(outside, "secret"), "up": ".."} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := creating(root)
	for _, key := range []string{"dir/secret", "file", "up/" + filepath.Base(outside) + "/secret",
		"../" + filepath.Base(outside) + "/secret"} {
		if got, _, err := read(t.Context(), s, key); err == nil {
			t.Errorf("%s: read %q", key, got)
		}
		if _, err := put(t.Context(), s, key+"2", "x", store.Condition{}); err == nil && key != "file" {
			t.Errorf("%s2: written", key)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside of the store are the files %v, %v", entries, err)
	}
	if got := keys(t, s); got != "file2" {
		t.Errorf("the store lists %s", got)
	}
}

func TestNoOrdinaryFile(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := creating(root)
	mustPut(t, s, "directory/key", "x")
	for _, key := range []string{"fifo", "directory"} {
		if _, _, err := s.Get(t.Context(), key, 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if got := keys(t, s); got != "directory/key" {
		t.Errorf("the store lists %s", got)
	}
}

func TestKeysThatADirectoryCannotHold(t *testing.T) {
	s := creating(t.TempDir())
	mustPut(t, s, "a/b", "x")
	for key, hint := range map[string]string{
		"a":                      "directory of another",
		"a/b/c":                  "directory of another",
		strings.Repeat("x", 300): "255 bytes",
		".corpus-lock":           "store's own",
		"a/.corpus-put-x":        "store's own",
		".corpus-x/y":            "store's own",
	} {
		if _, err := put(t.Context(), s, key, "x", store.Condition{}); err == nil ||
			!strings.Contains(diag.HintOf(err), hint) {
			t.Errorf("%.20s: %v, hint %q", key, err, diag.HintOf(err))
		}
	}
	if _, _, err := s.Get(t.Context(), strings.Repeat("x", 300), 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("reading a name that is too long: %v", err)
	}
	if got := keys(t, s); got != "a/b" {
		t.Errorf("the store lists %s", got)
	}
}

// TestTemporaryFilesOfDeadWriterAreRemoved checks that the temporary file of a dead writer is never listed and is
// removed by a later writer.
func TestTemporaryFilesOfDeadWriterAreRemoved(t *testing.T) {
	root := t.TempDir()
	mustPut(t, creating(root), "a/key", "x")
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{".corpus-put-dead", ".corpus-put-alive", ".corpus-put-fresh"} {
		path := filepath.Join(root, "a", name)
		if err := os.WriteFile(path, []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
		if name != ".corpus-put-fresh" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	alive, err := os.Open(filepath.Join(root, "a/.corpus-put-alive"))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if err := syscall.Flock(int(alive.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	s := creating(root) // another process, later
	mustPut(t, s, "a/other", "y")
	if got := keys(t, s); got != "a/key a/other" {
		t.Errorf("the store lists %s", got)
	}
	left, err := filepath.Glob(filepath.Join(root, "a/.corpus-put-*"))
	if err != nil || len(left) != 2 || filepath.Base(left[0]) != ".corpus-put-alive" ||
		filepath.Base(left[1]) != ".corpus-put-fresh" {
		t.Errorf("the files are %v, %v", left, err)
	}
}

// asNobody runs f without root's permissions for files.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setfsuid(0); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

func TestPermissions(t *testing.T) {
	root := t.TempDir()
	for d := root; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := creating(root)
	mustPut(t, s, "open/key", "x")
	mustPut(t, s, "closed/key", "x")
	for path, mode := range map[string]os.FileMode{"open": 0o555, "open/key": 0, "closed": 0} {
		if err := os.Chmod(filepath.Join(root, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // so that the directory can be removed
		_ = os.Chmod(filepath.Join(root, "open"), 0o755)
		_ = os.Chmod(filepath.Join(root, "closed"), 0o755)
	})
	failures := map[string]error{}
	asNobody(t, func() {
		_, _, failures["Get of a file"] = s.Get(t.Context(), "open/key", 0)
		_, _, failures["Get from a directory"] = s.Get(t.Context(), "closed/key", 0)
		_, failures["Put"] = put(t.Context(), s, "open/new", "x", store.Condition{})
		failures["Delete"] = s.Delete(t.Context(), "open/key")
		for _, failures["List"] = range s.List(t.Context(), "") {
			if failures["List"] != nil {
				break
			}
		}
	})
	if err := os.Chmod(filepath.Join(root, "open"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "open/.corpus-lock")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "open"), 0o555); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() { failures["Delete in a copied tree"] = s.Delete(t.Context(), "open/key") })
	for what, err := range failures {
		if !errors.Is(err, store.ErrForbidden) || !strings.Contains(diag.HintOf(err), "must be allowed") {
			t.Errorf("%s: %v, hint %q", what, err, diag.HintOf(err))
		}
	}
}

// TestFileTruncatedWhileReading has another program truncate the file.
func TestFileTruncatedWhileReading(t *testing.T) {
	root := t.TempDir()
	s := creating(root)
	data := bytes.Repeat([]byte("0123456789"), 500_000)
	if _, err := s.Put(t.Context(), "key", bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	body, _, err := s.Get(t.Context(), "key", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if err := os.Truncate(filepath.Join(root, "key"), 1_000_000); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || n != 1_000_000 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestETagsOfQuickOverwrites checks that large objects, whose ETags are not digests, get different ETags when they are
// overwritten quickly.
func TestETagsOfQuickOverwrites(t *testing.T) {
	s, seen := creating(t.TempDir()), map[string]bool{}
	data := make([]byte, 1<<20+1)
	for i := range 30 {
		data[0] = byte(i)
		info, err := s.Put(t.Context(), "key", bytes.NewReader(data), int64(len(data)), store.Condition{})
		if err != nil {
			t.Fatal(err)
		}
		if seen[info.ETag] {
			t.Fatalf("overwrite %d has an ETag that was used before", i)
		}
		seen[info.ETag] = true
	}
}

func BenchmarkGet(b *testing.B) { storetest.BenchmarkGet(b, creating(b.TempDir())) }

// TestLockFollowsWhoMayWrite checks that only users who may write to the directory can open its lock, since other users
// could hold it.
func TestLockFollowsWhoMayWrite(t *testing.T) {
	for mode, want := range map[os.FileMode]os.FileMode{0o755: 0o600, 0o700: 0o600, 0o775: 0o660, 0o777: 0o666} {
		root := t.TempDir()
		if err := os.Chmod(root, mode); err != nil {
			t.Fatal(err)
		}
		lock := filepath.Join(root, ".corpus-lock")
		if err := os.WriteFile(lock, nil, 0o644); err != nil { // as an earlier version made it
			t.Fatal(err)
		}
		mustPut(t, creating(root), "key", "x")
		info, err := os.Stat(lock)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("in a directory of mode %o the lock has %o, want %o", mode, info.Mode().Perm(), want)
		}
	}
}

// TestHeldLockErrorNamesHolder checks that a writer does not wait forever, and that its error names the process with
// the lock.
func TestHeldLockErrorNamesHolder(t *testing.T) {
	root := t.TempDir()
	s := creating(root)
	s.LockWait = 50 * time.Millisecond
	mustPut(t, s, "key", "x")
	f, err := os.Open(filepath.Join(root, ".corpus-lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, err = put(t.Context(), s, "key", "y", store.Condition{})
	if err == nil || !strings.Contains(err.Error(), "held the lock") || diag.HintOf(err) == "" {
		t.Errorf("a lock that is held: %v, hint %q", err, diag.HintOf(err))
	}
	s.LockWait = 0
	_, err = put(store.LockWait(t.Context(), 20*time.Millisecond), s, "key", "y", store.Condition{})
	if err == nil || !strings.Contains(err.Error(), "for more than 20ms") {
		t.Errorf("with a limit of the caller: %v", err)
	}
	s.LockWait = 300 * time.Millisecond
	impatient := store.Timeout(s, store.TimeoutPolicy{Answer: 50 * time.Millisecond, Idle: 50 * time.Millisecond})
	_, err = put(t.Context(), impatient, "key", "y", store.Condition{})
	for _, err := range []error{err, impatient.Delete(t.Context(), "key")} {
		if err == nil || !strings.Contains(err.Error(), "for more than 300ms") {
			t.Errorf("a limit of requests that is shorter: %v", err)
		}
	}
	if failed := new(store.Error); !errors.As(err, &failed) || failed.Again {
		t.Errorf("a write is repeated after %v", err)
	}
	if !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("the process that holds the lock is not named: %v", err)
	}
}
