package durable

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// killed runs this test in a new process, which kills itself during a write to a directory.
func killed(t *testing.T, how, dir string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestKilledWritesLeaveNothing$")
	c.Env = append(os.Environ(), "CORPUS_TEST_WRITE="+how, "CORPUS_TEST_DIR="+dir)
	var ended *exec.ExitError
	if out, err := c.CombinedOutput(); !errors.As(err, &ended) ||
		ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
}

func killDuringWrite(t *testing.T, how, dir string) {
	var err error
	switch how {
	case "unnamed":
		err = Write(filepath.Join(dir, "out"), 0o600, func(w io.Writer) error {
			_, err := w.Write([]byte("half"))
			return errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		})
	case "named":
		if _, err = locked(dir); err == nil {
			err = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	t.Fatalf("the process still runs: %v", err)
}

// TestKilledWritesLeaveNothing kills writers with SIGKILL. An unnamed file disappears, and the next write removes the
// named ones. The files of a running writer, and files that Create did not make, stay.
func TestKilledWritesLeaveNothing(t *testing.T) {
	if how := os.Getenv("CORPUS_TEST_WRITE"); how != "" {
		killDuringWrite(t, how, os.Getenv("CORPUS_TEST_DIR"))
	}
	dir := t.TempDir()
	left := func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	if f, err := unnamed(dir); err == nil {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		killed(t, "unnamed", dir)
		if got := left(); got != "" {
			t.Errorf("a writer that was killed left %s", got)
		}
	} else {
		t.Logf("%s makes no file without a name: %v", dir, err)
	}
	living, err := locked(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, tempPrefix+"1")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := filepath.Base(other) + " " + filepath.Base(living.Name())
	killed(t, "named", dir)
	if left() == want {
		t.Fatal("a writer that was killed left no named file, so there is nothing to sweep")
	}
	if err := SweepAbandoned(dir); err != nil || left() != want {
		t.Errorf("a sweep leaves %s, %v; want %s", left(), err, want)
	}
	killed(t, "named", dir)
	killed(t, "named", dir)
	if n := len(strings.Fields(left())); n != 3 {
		t.Errorf("two writers that were killed one after the other left %s", left())
	}
}

// TestPendingFilesGetTheirNames commits named, unnamed and copied files over an existing file.
func TestPendingFilesGetTheirNames(t *testing.T) {
	for how, create := range map[string]func(string) (*Pending, error){
		"as the filesystem does": Create,
		"named": func(path string) (*Pending, error) {
			f, err := locked(filepath.Dir(path))
			if err != nil {
				return nil, err
			}
			return &Pending{File: f, path: path, temp: f.Name()}, nil
		},
		"linking is refused": func(path string) (*Pending, error) {
			p, err := Create(path)
			if err != nil || p.temp != "" {
				return p, err
			}
			_, err = p.WriteString("new") // the copy has the bytes written so far
			err = errors.Join(err, p.copied())
			if err == nil {
				_, err = p.Seek(0, io.SeekStart)
			}
			return p, err
		},
	} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			if err := os.WriteFile(path, []byte("old, and longer"), 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := create(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.WriteString("new"); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(p.Commit(0o640, true), p.Close()); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			info, statErr := os.Stat(path)
			entries, listErr := os.ReadDir(dir)
			if err := errors.Join(err, statErr, listErr); err != nil || string(data) != "new" || info.Mode() != 0o640 ||
				len(entries) != 1 {
				t.Errorf("the file has %q and mode %v; the directory has %v, %v", data, info.Mode(), entries, err)
			}
		})
	}
}
