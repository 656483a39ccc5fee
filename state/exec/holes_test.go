package exec_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestHugeSparseFilesAreFast has a user make the files that states copy and compare larger than any
// disk, without room on it.
func TestHugeSparseFilesAreFast(t *testing.T) {
	dir := t.TempDir()
	source := dir + "/source"
	if err := os.WriteFile(source, []byte("word"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(source, 1<<42); err != nil {
		t.Skip("no file is that large here:", err)
	}
	sls := strings.ReplaceAll(`
DIR/copy:
  file.copy:
    - source: DIR/source
    - force: true
DIR/managed:
  file.managed:
    - source: DIR/source
`, "DIR", dir)
	for run, want := range []string{"copied", "is the same already"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		got, took := runHanging(t, ctx, sls, time.Hour)
		cancel()
		if !strings.Contains(got, want) || strings.Contains(got, "ended") || !strings.Contains(got, "managed: ") {
			t.Errorf("run %d took %s: %s", run+1, took, got)
		}
	}
}

// TestCheckEndsSoonAfterSignal has the time for states under way be an hour: a state that has
// changed nothing yet does not get it.
func TestCheckEndsSoonAfterSignal(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	sls := strings.NewReplacer("DIR", t.TempDir(), "ADDRESS", silent.Addr().String()).Replace(`
clone:
  git.latest:
    - name: git://ADDRESS/no/such.git
    - target: DIR/clone
`)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)
	got, took := runHanging(t, ctx, sls, time.Hour)
	if took > 30*time.Second || !strings.Contains(got, "asked to end before the step had found out") {
		t.Errorf("after %s: %s", took, got)
	}
}
