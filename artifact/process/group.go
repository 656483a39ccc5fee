package process

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// group is a control group (version 2) below that of this process.
type group struct {
	path string
	dir  *os.File
}

// newGroup makes a control group in which a command can be started and which can be killed as a whole. It returns nil
// if the kernel or the permissions of this process do not allow that.
func newGroup() *group {
	own := ownGroup()
	if own == "" || !startsInGroups() || unix.Access(filepath.Join(own, "cgroup.procs"), unix.W_OK) != nil {
		return nil
	}
	sweepGroups(own)
	path := filepath.Join(own, groupPrefix+strconv.Itoa(os.Getpid())+"-"+rand.Text()[:8])
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil
	}
	g := &group{path: path}
	kind, err := os.ReadFile(filepath.Join(path, "cgroup.type"))
	if err == nil && strings.TrimSpace(string(kind)) == "domain" &&
		unix.Access(filepath.Join(path, "cgroup.kill"), unix.W_OK) == nil {
		if g.dir, err = os.Open(path); err == nil {
			return g
		}
	}
	g.remove()
	return nil
}

// groupPrefix starts the names of groups; the ID of the process that made the group follows.
const groupPrefix = "corpus-"

// sweepGroups removes the empty groups of processes that have ended.
func sweepGroups(own string) {
	entries, _ := os.ReadDir(own)
	for _, e := range entries {
		id, made := strings.CutPrefix(e.Name(), groupPrefix)
		number, _, _ := strings.Cut(id, "-")
		if pid, err := strconv.Atoi(number); made && err == nil && pid > 0 && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.Remove(filepath.Join(own, e.Name())) // the kernel refuses this for a group with processes
		}
	}
}

// startsInGroups reports whether clone3(2) may be called; seccomp filters of containers refuse it. All kernels with
// cgroup.kill support its flag CLONE_INTO_CGROUP.
func startsInGroups() bool {
	_, _, errno := unix.Syscall(unix.SYS_CLONE3, 0, 0, 0)
	return errno == unix.EINVAL
}

// ownGroup returns the directory of this process's control group of version 2, or "".
func ownGroup() string {
	for line := range strings.Lines(groupsOf("self")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && !strings.Contains(name, "..") {
			return groupDir(name)
		}
	}
	return ""
}

// groupDir returns the directory of a control group in the mounted hierarchy, or "".
func groupDir(name string) string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for _, m := range walk.Mounts(string(mounts)) {
		if m.Type != "cgroup2" {
			continue
		}
		if below, err := filepath.Rel(walk.MountWord(m.Root), name); err == nil && below != ".." &&
			!strings.HasPrefix(below, "../") {
			return filepath.Join(walk.MountWord(m.Place), below)
		}
	}
	return ""
}

// kill sends SIGKILL to all processes of the group and of those below it.
func (g *group) kill() {
	_ = os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0) // on failure, outside returns the processes
}

// outside returns the living processes of the group that are not in a process group.
func (g *group) outside(leader int) []int {
	data, _ := os.ReadFile(filepath.Join(g.path, "cgroup.procs"))
	var left []int
	for _, field := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(field)
		if at, errno := syscall.Getpgid(pid); err == nil && pid > 0 && errno == nil && at != leader {
			left = append(left, pid)
		}
	}
	return left
}

// remove removes the group. The kernel refuses that while it has processes, which may have been left on purpose.
func (g *group) remove() {
	if g.dir != nil {
		_ = g.dir.Close() // nothing was written
	}
	for range 20 { // killed processes take a moment to disappear
		if !errors.Is(os.Remove(g.path), unix.EBUSY) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
