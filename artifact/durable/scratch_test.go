package durable_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
)

// TestScratchInKeepsWhatLives checks that a directory of a process that lives stays, like a file, and that one of a
// process that has ended is removed.
func TestScratchInKeepsWhatLives(t *testing.T) {
	parent := t.TempDir()
	living, done, err := durable.ScratchIn(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ended, err := durable.TempDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	file, err := durable.TempFile(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := durable.SweepScratchIn(parent); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{living: true, file.Name(): true, ended: false} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it to be there: %v", path, err, want)
		}
	}
}

// TestScratchOfKilledProcessIsRemoved checks that the directory of a killed process is removed by the next process, and
// that those of a living process and of other programs stay.
func TestScratchOfKilledProcessIsRemoved(t *testing.T) {
	if os.Getenv("CORPUS_TEST_SCRATCH") != "" {
		dir, _, err := durable.Scratch()
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, "read-only", "below"), 0o700)
		}
		if err == nil {
			err = os.Chmod(filepath.Join(dir, "read-only"), 0o500)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	other := filepath.Join(temp, "corpus-something-else")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	living, done, err := durable.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		killed := exec.Command(os.Args[0], "-test.run=^TestScratchOfKilledProcessIsRemoved$")
		killed.Env = append(os.Environ(), "CORPUS_TEST_SCRATCH=1")
		if err := killed.Run(); err == nil {
			t.Fatal("the process was not killed")
		}
		if left := names(t, temp); len(left) != 3 {
			t.Errorf("a killed process leaves %v, want its own directory and the two others", left)
		}
	}
	if err := durable.SweepScratch(); err != nil {
		t.Error(err)
	}
	if left := names(t, temp); len(left) != 2 {
		t.Errorf("a sweep leaves %v, want %s and %s", left, living, other)
	}
	done()
	if left := names(t, temp); len(left) != 1 {
		t.Errorf("at the end the directories are %v", left)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestScratchOfRootAlone checks that root makes no directory where another user could exchange it.
func TestScratchOfRootAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: only root uses another directory")
	}
	shared := filepath.Join(t.TempDir(), "tmp")
	for mode, in := range map[os.FileMode]bool{0o777: false, 0o777 | os.ModeSticky: true, 0o700: true} {
		if err := errors.Join(os.MkdirAll(shared, 0o700), os.Chmod(shared, mode)); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", shared)
		dir, done, err := durable.Scratch()
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		if (filepath.Dir(dir) == shared) != in {
			t.Errorf("with mode %v of the directory for temporary files, the scratch is %s", mode, dir)
		}
	}
}
