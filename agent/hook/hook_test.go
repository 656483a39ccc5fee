package hook_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// hooks makes a directory of shell scripts.
func hooks(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHooksRunInTheOrderOfTheirNamesUntilOneFails(t *testing.T) {
	dir := hooks(t, map[string]string{"20-second": "echo two; exit 3", "10-first": "echo one", "30-third": "echo three",
		"README.txt": "exit 9", ".hidden": "exit 9"})
	results, err := hook.Run(t.Context(), dir, hook.Options{Timeout: time.Minute})
	var failed *hook.Failed
	if !errors.As(err, &failed) || failed.Result.Name != "20-second" || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error is %v, want that of 20-second", err)
	}
	if len(results) != 2 || results[0].Output != "one" || results[1].Output != "two" {
		t.Errorf("results are %+v, want one and two", results)
	}
}

func TestMissingDirectoryHasNoHooks(t *testing.T) {
	results, err := hook.Run(t.Context(), filepath.Join(t.TempDir(), "absent"), hook.Options{Timeout: time.Minute})
	if err != nil || len(results) != 0 {
		t.Errorf("got %v, %v", results, err)
	}
}

func TestHookThatIsNotExecutableIsAnError(t *testing.T) {
	dir := hooks(t, map[string]string{"10-forgotten": "true"})
	if err := os.Chmod(filepath.Join(dir, "10-forgotten"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := hook.Run(t.Context(), dir, hook.Options{Timeout: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "not executable") || diag.HintOf(err) == "" {
		t.Errorf("error is %v with hint %q", err, diag.HintOf(err))
	}
}

func TestHookSeesACleanEnvironmentAndItsDirectory(t *testing.T) {
	t.Setenv("SECRET", "of the operator")
	dir, work := hooks(t, map[string]string{"show": "env; pwd"}), t.TempDir()
	results, err := hook.Run(t.Context(), dir, hook.Options{Env: []string{"CORPUS_STAGE=pre-release"}, Dir: work,
		Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if out := results[0].Output; strings.Contains(out, "SECRET") || !strings.Contains(out, "CORPUS_STAGE=pre-release") ||
		!strings.Contains(out, work) {
		t.Errorf("the environment of the hook is %q", out)
	}
}

func TestHangingHookIsKilledWithItsProcesses(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	dir := hooks(t, map[string]string{"hang": `trap "" TERM; sleep 300 & echo $! >` + pids + `; echo $$ >>` + pids +
		`; wait; wait`})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // without the timeout of the hook
	defer cancel()
	_, err := hook.Run(ctx, dir, hook.Options{Timeout: 300 * time.Millisecond, Grace: 100 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "longer than 300ms") {
		t.Errorf("error is %v, want a timeout", err)
	}
	gone(t, pids)
}

func TestForkedProcessesOfAHookAreKilled(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	dir := hooks(t, map[string]string{"fork": `sleep 300 >/dev/null 2>&1 </dev/null & echo $! >` + pids})
	if _, err := hook.Run(t.Context(), dir, hook.Options{Timeout: time.Minute}); err != nil {
		t.Errorf("a hook that ends well: %v", err)
	}
	gone(t, pids)
}

func TestProcessWithOpenPipeDoesNotBlockTheRun(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	dir := hooks(t, map[string]string{"daemon": `setsid sh -c 'echo $$ >` + pids + `; exec sleep 300' & while [ ! -s ` +
		pids + ` ]; do :; done; echo done`})
	results, err := hook.Run(t.Context(), dir, hook.Options{Timeout: time.Minute})
	if err != nil || !strings.HasPrefix(results[0].Output, "done\n[a process that it left behind held its output open") {
		t.Errorf("a hook that ended with success gives %+v, %v", results, err)
	}
	gone(t, pids)
}

// A process that holds the output open does not make the hook exceed its time limit, even if the limit is short.
func TestResultOfAHookIsThatOfItsMainProcess(t *testing.T) {
	for script, want := range map[string]string{"sleep 300 & exit 0": "", "sleep 300 & exit 3": "exit status 3"} {
		dir := hooks(t, map[string]string{"hook": script})
		_, err := hook.Run(t.Context(), dir, hook.Options{Timeout: time.Minute, Env: []string{"PATH=" + os.Getenv("PATH")}})
		if got := fmt.Sprint(errors.Unwrap(err)); got != cmp.Or(want, "<nil>") {
			t.Errorf("%s: the error is %s, want %s", script, got, want)
		}
	}
}

func TestHookMayIgnoreItsInput(t *testing.T) {
	dir := hooks(t, map[string]string{"deaf": "sleep 300 </dev/fd/0 & exit 0"})
	input := strings.NewReader(strings.Repeat("x", 1<<20))
	if result, err := hook.Program(t.Context(), filepath.Join(dir, "deaf"),
		hook.Options{Timeout: time.Minute, Stdin: input}); err != nil {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestAHookReadsItsInput(t *testing.T) {
	dir := hooks(t, map[string]string{"count": "wc -c; echo seen >&2"})
	input := strings.NewReader(strings.Repeat("x", 1<<20))
	result, err := hook.Program(t.Context(), filepath.Join(dir, "count"),
		hook.Options{Timeout: time.Minute, Stdin: input, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil || strings.Join(strings.Fields(result.Output), " ") != "1048576 seen" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestHangingHookIsKilledWithItsSessions(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	dir := hooks(t, map[string]string{"daemon": `(setsid sh -c 'trap "" TERM; echo $$ >` + pids +
		`; exec sleep 300' >/dev/null 2>&1 &); sleep 300`})
	_, err := hook.Run(t.Context(), dir, hook.Options{Timeout: 500 * time.Millisecond, Grace: 100 * time.Millisecond,
		Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err == nil || !strings.Contains(err.Error(), "longer than 500ms") {
		t.Errorf("error is %v, want a timeout", err)
	}
	gone(t, pids)
}

func TestHookIsInterruptedWithTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	dir := hooks(t, map[string]string{"long": "touch " + started + "; exec sleep 300"})
	go func() {
		for {
			if _, err := os.Stat(started); err == nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := hook.Run(ctx, dir, hook.Options{Timeout: time.Minute}); !errors.Is(err, context.Canceled) ||
		!strings.HasSuffix(err.Error(), ": interrupted") {
		t.Errorf("error is %v, want that of the run", err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	dir := hooks(t, map[string]string{"chatty": "head -c 100000 /dev/zero | tr '\\0' x"})
	results, err := hook.Run(t.Context(), dir, hook.Options{Timeout: time.Minute, Output: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if out := results[0].Output; len(out) > 1100 || !strings.Contains(out, "99000 more bytes") {
		t.Errorf("%d bytes were kept, ending in %q", len(out), out[max(0, len(out)-50):])
	}
}

// TestOutputIsBoundedWithoutASetting checks the limit that hooks have by default.
func TestOutputIsBoundedWithoutASetting(t *testing.T) {
	dir := hooks(t, map[string]string{"chatty": "head -c 200000 /dev/zero | tr '\\0' x"})
	results, err := hook.Run(t.Context(), dir, hook.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if out := results[0].Output; len(out) > 65<<10 || len(out) < 63<<10 {
		t.Errorf("%d bytes were kept", len(out))
	}
}

// gone checks that the processes in a file have ended.
func gone(t *testing.T, file string) {
	t.Helper()
	for _, pid := range read(t, file) {
		deadline := time.Now().Add(10 * time.Second)
		for alive(pid) && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		if alive(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("process %d still runs", pid)
		}
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func read(t *testing.T, file string) []int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, field := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
