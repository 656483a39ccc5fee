package process

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Tree is a command and all processes that it starts, including those that called setsid(2) or forked twice. If the
// kernel has control groups (version 2), the command runs in a new one, which its children cannot leave by themselves.
// Otherwise its processes are found by their parents and by an environment variable.
//
// Services, scopes and user sessions that systemd starts for the command have their own control groups and are not part
// of the tree.
type Tree struct {
	cmd   *exec.Cmd
	group *group // nil if there are no control groups
	mark  string // NAME=value in the environment of its processes, if there is no group
	whole bool   // End also kills processes that left the process group
	ended atomic.Bool
}

// markName is the variable by which the processes of a tree are found without control groups.
const markName = "CORPUS_PROCESS_TREE"

// Enclose prepares a command as the root of a tree, like [Detach]. It must be called before the command is started and
// after its environment is set. The caller must call End when the command has ended, or did not start.
func Enclose(cmd *exec.Cmd) *Tree {
	_, err := os.Stat("/run/systemd/system")
	t := &Tree{cmd: cmd, whole: err == nil}
	t.prepare(newGroup())
	return t
}

func (t *Tree) prepare(g *group) {
	Detach(t.cmd)
	if g != nil {
		t.group = g
		t.cmd.SysProcAttr.UseCgroupFD, t.cmd.SysProcAttr.CgroupFD = true, int(g.dir.Fd())
		return
	}
	if t.cmd.Env == nil { // it inherits the environment of this process
		t.cmd.Env = os.Environ()
	}
	t.mark = markName + "=" + rand.Text()
	t.cmd.Env = append(slices.Clip(t.cmd.Env), t.mark)
}

// Signal sends a signal to all processes of the tree, unless End or Leave was called.
func (t *Tree) Signal(signal syscall.Signal) error {
	if t.cmd.Process == nil || t.ended.Load() {
		return nil
	}
	left := t.outside(true)
	err := Signal(t.cmd, signal)
	for _, pid := range left {
		_ = syscall.Kill(pid, signal) // it may have ended
	}
	return err
}

// End kills the remaining processes of the tree. On a host without systemd, a command that ended by itself may have
// restarted a service, which is then part of the tree. There, processes that left the process group are only killed if
// the command was killed too, as overdue reports.
func (t *Tree) End(overdue bool) {
	t.ended.Store(true)
	_ = Signal(t.cmd, syscall.SIGKILL)
	if t.cmd.Process != nil && (t.whole || overdue) {
		t.kill()
	}
	t.Leave()
}

// Leave lets the remaining processes of the tree continue.
func (t *Tree) Leave() {
	t.ended.Store(true)
	if t.group != nil {
		t.group.remove()
	}
}

// endWait is the maximum time that End waits for killed processes to disappear.
const endWait = 2 * time.Second

// kill kills all processes, including those that they start in the meantime. Without a control group it looks twice,
// since the kernel shows no environment of a process that is being replaced by execve.
func (t *Tree) kill() {
	empty := 0
	for end := time.Now().Add(endWait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if t.group != nil {
			t.group.kill()
		}
		left := t.outside(false)
		if empty++; len(left) > 0 {
			empty = 0
		} else if t.group != nil || empty == 2 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// outside returns the living processes of the tree that are not in the command's process group. After the command was
// waited for, running must be false, since its ID may belong to another process.
func (t *Tree) outside(running bool) []int {
	if t.group != nil {
		return t.group.outside(t.cmd.Process.Pid)
	}
	all := processes()
	children := map[int][]int{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p.pid)
	}
	member := map[int]bool{}
	var add func(pid int)
	add = func(pid int) {
		if !member[pid] {
			member[pid] = true
			for _, child := range children[pid] {
				add(child)
			}
		}
	}
	if running {
		add(t.cmd.Process.Pid)
	}
	for _, p := range all {
		if hasVariable(p.pid, t.mark) {
			add(p.pid)
		}
	}
	own := groupsOf("self")
	var left []int
	for _, p := range all {
		if member[p.pid] && p.group != t.cmd.Process.Pid && groupsOf(p.name()) == own {
			left = append(left, p.pid)
		}
	}
	return left
}

// hasVariable reports whether a process was started with a variable. It returns false if the process cannot be read.
func hasVariable(pid int, variable string) bool {
	data, err := os.ReadFile(filepath.Join("/proc", numbered(pid).name(), "environ"))
	return err == nil && strings.Contains("\x00"+string(data), "\x00"+variable+"\x00")
}

// groupsOf returns the control groups of a process as the kernel lists them, or "" if they cannot be read.
func groupsOf(process string) string {
	data, _ := os.ReadFile(filepath.Join("/proc", process, "cgroup"))
	return string(data)
}
