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

// TestHugeSparseFilesAreFast checks that states copy and compare sparse files fast, even if a user made them larger
// than any disk.
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
		if !strings.Contains(got, want) || strings.Contains(got, "cancelled") || !strings.Contains(got, "managed: ") {
			t.Errorf("run %d took %s: %s", run+1, took, got)
		}
	}
}

// TestCheckEndsSoonAfterSignal checks that the grace period, here an hour, does not apply to a state that has changed
// nothing yet.
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
	if took > 30*time.Second || !strings.Contains(got, "the run was cancelled while the step compared") {
		t.Errorf("after %s: %s", took, got)
	}
}
