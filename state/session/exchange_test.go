package session_test

import (
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// exchangeEnv is the environment variable with the directory in which the test binary, run by ann, exchanges files
// until it is killed.
const exchangeEnv = "CORPUS_TEST_EXCHANGE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(exchangeEnv); dir != "" {
		exchange(dir)
	}
	os.Exit(m.Run())
}

// exchange swaps ann's directories and files with links, pipes and hard links, without end.
func exchange(dir string) {
	if err := os.Chdir(dir); err != nil {
		os.Exit(1)
	}
	pairs := [][2]string{{"work", "tolink"}, {"file", "filelink"}, {"file", "filepipe"}, {"work/x", "work/evil"},
		{"own", "work"}}
	for i := 0; ; i++ {
		p := pairs[i%len(pairs)]
		_ = unix.Renameat2(unix.AT_FDCWD, p[0], unix.AT_FDCWD, p[1], unix.RENAME_EXCHANGE)
		if i%7 == 0 {
			time.Sleep(time.Microsecond)
		}
	}
}

// TestStatesUnderExchange runs root's states in ann's home while a process of ann swaps directories and files with
// links to root's files.
func TestStatesUnderExchange(t *testing.T) {
	root := annsHost(t)
	for _, p := range []string{root, filepath.Dir(root)} {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(root, "home/ann")
	for name, target := range map[string]string{"tolink": "/etc/dir", "filelink": "/etc/secret",
		"work/evil": "../../../etc/key"} {
		if err := os.MkdirAll(filepath.Join(home, "work"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"work/x", "work/f"} {
		if err := os.WriteFile(filepath.Join(home, p), []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(home, "filepipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(home, "hard")); err != nil {
		t.Fatal(err)
	}
	own(t, home)
	before := outside(t, root)
	self, err := os.ReadFile("/proc/self/exe") // ann may not be able to enter its directory
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(root, "var/program")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(program)
	cmd.Env = []string{exchangeEnv + "=" + home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ann, Gid: ann}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	sls := `
m: {file.managed: [{name: /home/ann/work/f}, {contents: CONTENTS}, {user: ann}, {mode: '0600'}]}
n: {file.managed: [{name: /home/ann/file}, {contents: CONTENTS}, {user: ann}]}
d: {file.directory: [{name: /home/ann/work}, {user: ann}, {group: ann}, {dir_mode: '0750'}, {file_mode: '0666'}, {recurse: [user, group, mode]}]}
a: {file.append: [{name: /home/ann/file}, {source: /home/ann/work/x}]}
c: {file.copy: [{name: /srv/copy}, {source: /home/ann/work/x}, {force: true}]}
r: {file.absent: [{name: /home/ann/work/f}]}
s: {file.symlink: [{name: /home/ann/work/s}, {target: CONTENTS}]}
`
	refused := 0
	for i, end := 0, time.Now().Add(4*time.Second); time.Now().Before(end); i++ {
		for _, r := range runOn(t, root, strings.ReplaceAll(sls, "CONTENTS", "c"+string(rune('a'+i%20))), false) {
			if strings.Contains(r.Comment, "refused, since") {
				refused++
			}
		}
		if copied, err := os.ReadFile(filepath.Join(root, "srv/copy")); err == nil &&
			strings.Contains(string(copied), "private") {
			t.Fatal("root's file was copied for ann")
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = os.Remove(filepath.Join(root, "srv/copy"))
	if after := outside(t, root); !maps.Equal(before, after) {
		t.Errorf("outside of ann's files there was\n%v\nand now\n%v", before, after)
	}
	if refused == 0 {
		t.Error("no state was refused, so the exchange had no effect")
	}
	t.Logf("%d states were refused", refused)
}
