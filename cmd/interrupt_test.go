package cmd_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCorpusEndsOnSignal sends SIGTERM to commands in work that does not check a context: hashing a file of 200 GiB,
// and reading a tree with such a file.
func TestCorpusEndsOnSignal(t *testing.T) {
	// A program that is started by one that ignores SIGHUP, such as nohup, ignores it too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	for name, args := range map[string][]string{
		"publish, SIGINT":        {"publish", "myapp", "1.0", "huge/big.tar"},
		"publish, SIGHUP":        {"publish", "myapp", "1.0", "huge/big.tar"},
		"publish of a huge file": {"publish", "myapp", "1.0", "huge/big.tar"},
		"build of a huge file":   {"build", "huge", "-o", "huge.tar.zst"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			r.must("corpus keys new", "corpus store init", "mkdir huge", "truncate -s 200G huge/big.tar",
				"mkdir tmp")
			cmd := exec.Command(filepath.Join(bin(t), "corpus"), args...)
			cmd.Dir, cmd.Env = r.dir, append(r.env, "CORPUS_STORE="+r.store, "TMPDIR="+r.dir+"/tmp")
			var output strings.Builder
			cmd.Stdout, cmd.Stderr = &output, &output
			ended := startAndWait(t, cmd)
			select {
			case err := <-ended:
				t.Fatalf("the command ended before the signal: %v\n%s", err, output.String())
			case <-time.After(3 * time.Second):
			}
			sent := syscall.SIGTERM
			switch {
			case strings.HasSuffix(name, "SIGINT"):
				sent = syscall.SIGINT
			case strings.HasSuffix(name, "SIGHUP"):
				sent = syscall.SIGHUP
			}
			_ = cmd.Process.Signal(sent)
			began := time.Now()
			select {
			case err := <-ended:
				var exited *exec.ExitError
				if !errors.As(err, &exited) || exited.ExitCode() != 130 {
					t.Errorf("the command ended with %v, want exit code 130\n%s", err, output.String())
				}
				t.Logf("ended %v after the signal", time.Since(began))
			case <-time.After(time.Minute): // 1.5 s on an idle machine
				t.Errorf("the command still runs after %v\n%s", sent, output.String())
			}
			if _, err := os.Stat(filepath.Join(r.dir, "huge.tar.zst")); err == nil {
				t.Error("an unfinished artifact has the name of the output")
			}
		})
	}
}

// startAndWait starts a command and returns a channel with its result. The end of the test kills it.
func startAndWait(t *testing.T, cmd *exec.Cmd) <-chan error {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended
}
