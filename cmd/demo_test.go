package cmd_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// demo runs the demonstration below a directory, and returns its output.
func demo(t *testing.T, bin, dir string) string {
	t.Helper()
	return shown(t, exec.Command("../testdata/demo/run", bin, dir))
}

// shown runs a command in an environment without settings of corpus.
func shown(t *testing.T, given *exec.Cmd) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, given.Path, given.Args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "CORPUS_METADATA_ENABLED=false"}
	process.Detach(cmd)
	cmd.Cancel = func() error { return process.Signal(cmd, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", given, err, out)
	}
	return string(out)
}

const (
	screenRows    = 24
	screenColumns = 120
)

// TestDemoOutput runs the demonstration like a new user. Each act fits on a screen, prints its result and where to
// look, and repeats no warning; production never gets a release that was rolled back.
func TestDemoOutput(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	out := demo(t, bin(t), filepath.Join(t.TempDir(), "demo"))
	acts := regexp.MustCompile(`(?m)^\d\. `).Split(out, -1)[1:]
	if len(acts) != 7 {
		t.Fatalf("the demo has %d acts:\n%s", len(acts), out)
	}
	for i, act := range acts {
		rows := 0
		for line := range strings.Lines(strings.TrimSpace(act)) {
			rows += 1 + len(line)/screenColumns
		}
		if rows > screenRows {
			t.Errorf("act %d takes %d rows of a screen, which has %d:\n%s", i+1, rows, screenRows, act)
		}
		if strings.Count(act, "\n=> ") != 1 || strings.Count(act, "\n   Look at: ") != 1 {
			t.Errorf("act %d lacks a line with its result or one with where to look:\n%s", i+1, act)
		}
	}
	_, fleet, _ := strings.Cut(out, "\nThe pages of the fleet: file://")
	host, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimSpace(fleet)), "project", "myapp", "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`host/([^/]+)/index.html`).FindSubmatch(host)
	if name == nil {
		t.Fatalf("the project's page names no host: %s", host)
	}
	host, err = os.ReadFile(filepath.Join(filepath.Dir(strings.TrimSpace(fleet)), "host", string(name[1]), "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"myapp 1.0", "myapp 1.1", "myapp 1.3", "rolled back"} {
		if !strings.Contains(string(host), version) {
			t.Errorf("the page of the host does not show %s", version)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "warning") || strings.HasPrefix(line, "skipped") ||
			strings.HasPrefix(line, "note") && seen[line] {
			t.Errorf("the demo prints: %s", line)
		}
		seen[line] = true
	}
	if last := acts[6]; !strings.Contains(last, "myapp/production is 1.3") || strings.Contains(last, "myapp 1.2") ||
		!strings.Contains(acts[4], "rolled back to: base 1.0, myapp 1.1") {
		t.Errorf("production does not get the corrected version:\n%s", out)
	}
}

// TestDemoCommandsCanBeCopied runs the commands that the demonstration prints in a new shell.
func TestDemoCommandsCanBeCopied(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	var typed []string
	for line := range strings.Lines(demo(t, bin(t), dir)) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			typed = append(typed, strings.TrimSpace(command))
		}
	}
	for _, made := range []string{"store", "keys", "root"} {
		if err := os.RemoveAll(filepath.Join(dir, made)); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf("cd /\n%s\ncat root/etc/myapp/myapp.conf\ncorpus ls\ncorpus-agent status\n",
		strings.Join(typed, "\n"))
	out := shown(t, exec.Command("sh", "-c", script))
	for _, want := range []string{"workers = 4\n", "myapp/production  1.3\n", "deployed      base 1.0, myapp 1.3\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("after the demo's commands, no output has %q:\n%s", want, out)
		}
	}
}
