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

// Tree is a command and all that it starts, a process that called setsid(2) or forked twice included. Where the kernel
// has control groups (version 2), the command runs in one of its own, which no child leaves by itself. Elsewhere its
// processes are found by their parents and by a variable of their environment.
//
// What systemd starts for the command, a service, a scope or a session of a user, is in a control group of its own and
// belongs to no tree.
type Tree struct {
	cmd   *exec.Cmd
	group *group // nil where there are no control groups
	mark  string // NAME=value in the environment of its processes, where there is no group
	whole bool   // End takes what left the process group, too
	ended atomic.Bool
}

// markName is the variable by which processes of a tree are found where there are no control groups.
const markName = "CORPUS_PROCESS_TREE"

// Enclose prepares a command, which must not have been started and has its whole environment set, as the root of a tree
// and as [Detach] does. The caller calls End when the command has ended, or did not start.
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
	if t.cmd.Env == nil { // it is started with that of this process
		t.cmd.Env = os.Environ()
	}
	t.mark = markName + "=" + rand.Text()
	t.cmd.Env = append(slices.Clip(t.cmd.Env), t.mark)
}

// Signal sends a signal to all processes of the tree, until End or Leave was called.
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

// End ends what is left of the tree by SIGKILL. On a host without systemd a command that ended by itself may have
// restarted a service, which is then a process of the tree; so what left the process group is only ended there if
// the command was ended too, as overdue says.
func (t *Tree) End(overdue bool) {
	t.ended.Store(true)
	_ = Signal(t.cmd, syscall.SIGKILL)
	if t.cmd.Process != nil && (t.whole || overdue) {
		t.kill()
	}
	t.Leave()
}

// Leave lets what is left of the tree go on.
func (t *Tree) Leave() {
	t.ended.Store(true)
	if t.group != nil {
		t.group.remove()
	}
}

// endWait is how long End waits for killed processes to be gone.
const endWait = 2 * time.Second

// kill ends all processes, and those that they start meanwhile.
func (t *Tree) kill() {
	for end := time.Now().Add(endWait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if t.group != nil {
			t.group.kill()
		}
		left := t.outside(false)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// outside are the living processes of the tree that are not of the command's process group. A command that was waited
// for lives no more, and its ID may be another's.
func (t *Tree) outside(lives bool) []int {
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
	if lives {
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

// hasVariable reports whether a process was started with a variable. A process that cannot be looked at is none of ours.
func hasVariable(pid int, variable string) bool {
	data, err := os.ReadFile(filepath.Join("/proc", numbered(pid).name(), "environ"))
	return err == nil && strings.Contains("\x00"+string(data), "\x00"+variable+"\x00")
}

// groupsOf are the control groups of a process as the kernel lists them; "" where that cannot be read.
func groupsOf(process string) string {
	data, _ := os.ReadFile(filepath.Join("/proc", process, "cgroup"))
	return string(data)
}
