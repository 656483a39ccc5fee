package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// TestRefusedCommandsCreateNoKeys checks that a refused command leaves no keys that a later one would use for the role.
func TestRefusedCommandsCreateNoKeys(t *testing.T) {
	a, b := newStore(t), newStore(t)
	a.artifact("one", "1")
	a.expect(0, "publish myapp 1.0 @one.tar.zst", "")
	own := a.env["CORPUS_STORE"]
	a.env["CORPUS_STORE"] = b.env["CORPUS_STORE"]
	a.expect(4, "keys rotate timestamp", "belong to")
	if left, err := os.ReadDir(a.path("keys/next")); !errors.Is(err, fs.ErrNotExist) && len(left) > 0 {
		t.Errorf("rotate with the wrong store left %v", left)
	}
	a.env["CORPUS_STORE"] = own
	a.move("elsewhere", "keys/snapshot.key")
	a.expect(2, "publish newproj 1.0 @one.tar.zst", "snapshot")
	if _, err := os.Stat(a.path("keys/newproj.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key of a refused project exists: %v", err)
	}
}

// TestMisplacedKeyFilesAreListed checks that an empty key file, and a file with the key of another role, are listed as
// such.
func TestMisplacedKeyFilesAreListed(t *testing.T) {
	s := newStore(t)
	s.write("keys/targets.key", "")
	s.copy("keys/root.key", "keys/snapshot.key")
	s.expect(0, "keys ls", "")
	for role, want := range map[string]string{"targets": "damaged", "snapshot": "another key", "root": "open"} {
		for line := range strings.Lines(s.out) {
			if strings.HasPrefix(line, role+" ") && !strings.Contains(line, want) {
				t.Errorf("keys ls lists %q, want %q in it", line, want)
			}
		}
	}
}

// TestRebuildRefusesEmptyDirectory checks that nothing is written into an empty directory, like a share that is not
// mounted.
func TestRebuildRefusesEmptyDirectory(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst", "")
	if err := os.Rename(s.path("store"), s.path("mounted")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path("store"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"refresh --rebuild", "store init", "refresh"} {
		if code := s.run(line); code == 0 {
			t.Errorf("corpus %s succeeds in an empty directory", line)
		}
	}
	s.expect(2, "refresh --rebuild", "mounted")
	if left := s.names("store"); len(left) > 0 {
		t.Errorf("the directory has %v", left)
	}
}

// TestKilledBuildLeavesNothing kills corpus build with SIGKILL while it packs: no incomplete output file is left after
// the next build.
func TestKilledBuildLeavesNothing(t *testing.T) {
	if dir := os.Getenv("CORPUS_TEST_BUILD"); dir != "" {
		t.Chdir(dir)
		var out bytes.Buffer
		t.Fatalf("the build was not killed: %d %s", Main(context.Background(), []string{"build", "tree", "-o", "out.tar.zst"},
			cli.IO{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: os.Getenv}), out.String())
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tree"), 0o755); err != nil {
		t.Fatal(err)
	}
	large, err := os.Create(filepath.Join(dir, "tree", "large"))
	if err == nil {
		err = errors.Join(large.Truncate(8<<30), large.Close()) // longer to pack than to be killed
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestKilledBuildLeavesNothing$")
	c.Env = append(os.Environ(), "CORPUS_TEST_BUILD="+dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	writing := func() bool { // whether the build has opened the output, with or without a name
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", c.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(fds, func(fd string) bool {
			to, err := os.Readlink(fd)
			return err == nil && strings.HasPrefix(to, dir+"/") && !strings.HasPrefix(to, dir+"/tree")
		})
	}
	for end := time.Now().Add(time.Minute); !writing(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the build writes nothing")
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := c.Wait(); !errors.As(err, &ended) || ended.Exited() {
		t.Fatalf("the build was not killed: %v", err)
	}
	if err := os.Truncate(large.Name(), 0); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	s.expect(0, "build "+filepath.Join(dir, "tree")+" -o "+filepath.Join(dir, "next.tar.zst"), "built")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("beside the tree and the next artifact there are %v, %v", entries, err)
	}
}
