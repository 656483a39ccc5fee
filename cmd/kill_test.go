package cmd_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestKilledCommandsLeaveNothing kills each command of corpus that uses temporary files while it uses one. The next
// command removes the file.
func TestKilledCommandsLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	temp, tree := filepath.Join(dir, "tmp"), filepath.Join(dir, "tree")
	for _, d := range []string{temp, filepath.Join(tree, "data")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	noise := make([]byte, 16<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // never fails
	for name, data := range map[string][]byte{
		"tree/data/noise": noise,
		"slow/corpus.yaml": []byte(
			"name: slow\nversion: '1'\nbuilder: command\nbuild:\n  command: [sleep, '60']\n  output: out\n"),
		"slow/app": []byte("app"),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	corpus := func(args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(bin(t), "corpus"), args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "TMPDIR="+temp, "CORPUS_STORE=file://"+dir+"/store", "CORPUS_KEYS="+dir+"/keys")
		return c
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := corpus(args...).CombinedOutput(); err != nil {
			t.Fatalf("corpus %v: %v\n%s", args, err, out)
		}
	}
	must("keys", "new")
	must("store", "init")
	must("build", "tree", "-o", "app.tar.zst")
	must("publish", "app", "1", "app.tar.zst", "--channel", "testing")
	must("publish", "app", "2", "app.tar.zst", "--channel", "testing") // the same bytes
	for _, args := range [][]string{
		{"publish", "app", "3", "app.tar.zst"},
		{"build", "slow", "-o", "slow.tar.zst"},
		{"build", "slow", "--check"},
		{"verify"},
	} {
		if !killedAtWork(t, corpus(args...), temp) {
			t.Errorf("corpus %v was not killed while it had a file in %s", args, temp)
		}
		must("ls")
		if left, _ := filepath.Glob(temp + "/*"); len(left) > 0 {
			t.Errorf("after a killed corpus %v and another command, the files are %v", args, left)
		}
	}
}

// killedAtWork kills a command as soon as a directory has a file.
func killedAtWork(t *testing.T, c *exec.Cmd, temp string) bool {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		if found, _ := filepath.Glob(temp + "/*/*"); len(found) > 0 {
			_ = c.Process.Kill()
			<-ended
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // also the programs that it started
			left, _ := filepath.Glob(temp + "/*")
			return len(left) > 0
		}
		select {
		case err := <-ended:
			t.Logf("the command ended: %v\n%s", err, out.String())
			return false
		case <-time.After(time.Millisecond):
		}
	}
}
