package process

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// detached starts processes in separate sessions, one of them without a parent in the tree, and prints their
// IDs.
const detached = `setsid sh -c 'echo $$; exec sleep 60' & (setsid sh -c 'trap "" TERM; echo $$; exec sleep 60' &); ` +
	`sleep 0.3; `

func TestTreeEndKillsProcessesOutsideTheGroup(t *testing.T) {
	for _, kind := range []string{"control group", "environment"} {
		for end, script := range map[string]string{"by itself": detached, "overdue": detached + "sleep 60"} {
			t.Run(kind+", "+end, func(t *testing.T) {
				tree, out := startTree(t, kind, script)
				tree.whole = true
				if end == "overdue" {
					time.AfterFunc(time.Second, func() { _ = tree.Signal(syscall.SIGTERM) })
				}
				_ = tree.cmd.Wait() // a signal ends it
				tree.End(end == "overdue")
				pids := strings.Fields(out.String())
				if len(pids) != 2 {
					t.Fatalf("the script printed %q", out)
				}
				for _, pid := range pids {
					if lives(pid) {
						t.Errorf("process %s continues", pid)
					}
				}
				if g := tree.group; g != nil {
					if _, err := os.Stat(g.path); !os.IsNotExist(err) {
						t.Errorf("the control group still exists: %v", err)
					}
				}
			})
		}
	}
}

// TestTreeEndKeepsServicesWithoutSystemd checks that a service continues that a hook restarted by its script, although
// it is a child process of the hook.
func TestTreeEndKeepsServicesWithoutSystemd(t *testing.T) {
	for _, kind := range []string{"control group", "environment"} {
		t.Run(kind, func(t *testing.T) {
			tree, out := startTree(t, kind, detached)
			tree.whole = false
			if err := tree.cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			tree.End(false)
			for _, pid := range strings.Fields(out.String()) {
				if !lives(pid) {
					t.Errorf("process %s was ended", pid)
				}
				n, _ := strconv.Atoi(pid)
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
			time.Sleep(50 * time.Millisecond)
			tree.Leave() // removes the group
		})
	}
}

// startTree starts a script as a tree of a kind. Its output goes to a file, which does not delay the end of a wait.
func startTree(t *testing.T, kind, script string) (*Tree, *printed) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"PATH=/usr/bin:/bin"}, out, out
	tree := &Tree{cmd: cmd}
	var g *group
	if kind == "control group" {
		if g = newGroup(); g == nil {
			t.Skip("this test cannot make control groups")
		}
	}
	tree.prepare(g)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return tree, &printed{out.Name()}
}

type printed struct{ file string }

func (p *printed) String() string {
	data, _ := os.ReadFile(p.file)
	return string(data)
}

func lives(pid string) bool {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !bytes.Contains(data, []byte(") Z "))
}
