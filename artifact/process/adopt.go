package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of all processes that its commands leave behind, however they detach themselves
// (setsid, forks, an empty environment). The returned function ends those that are still in this process's control
// group, as systemd does at the end of a unit, and returns their names. Services that systemd started for a command
// have their own control groups and continue, and so does a program of this process's user that serves a file system
// (FUSE).
//
// On a host without systemd, Adopt does nothing: there, services that a command started cannot be distinguished from
// processes that it left behind.
func Adopt() (end func() []string) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return func() []string { return nil }
	}
	return adopt()
}

func adopt() (end func() []string) {
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return func() []string { return nil }
	}
	return endAdopted
}

// termWait is the time for a process that was left behind to end after SIGTERM.
const termWait = 500 * time.Millisecond

// quietLooks is the number of successive searches that have to find no process: a process that forks and ends during a
// search can be missed together with its child.
const quietLooks = 3

func endAdopted() (names []string) {
	if reap() {
		return nil
	}
	own, signal, begun := groupsOf("self"), syscall.SIGTERM, time.Now()
	for quiet := 0; quiet < quietLooks && time.Since(begun) < endWait && !reap(); time.Sleep(10 * time.Millisecond) {
		left := descendants(os.Getpid(), own)
		if quiet++; len(left) > 0 {
			quiet = 0
		}
		if names == nil && len(left) > 0 {
			names = namesOf(left)
		}
		for _, p := range left {
			_ = syscall.Kill(p.pid, signal) // it may have ended
		}
		if time.Since(begun) > termWait {
			signal = syscall.SIGKILL
		}
	}
	return names
}

// reap waits for the children that have ended, and reports whether none is left.
func reap() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return true // ECHILD: there are no children
		case pid == 0:
			return false
		}
	}
}

// descendants returns the living processes below a process that are in a control group.
func descendants(pid int, group string) (found []listed) {
	children := map[int][]listed{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p)
	}
	for _, p := range below(children, pid) {
		if groupsOf(p.name()) == group && !servesFiles(p) {
			found = append(found, p)
		}
	}
	return found
}

func below(children map[int][]listed, pid int) (all []listed) {
	for _, p := range children[pid] {
		all = append(append(all, p), below(children, p.pid)...)
	}
	return all
}

// servesFiles reports whether a process of this process's user serves a file system, which would become unreachable if
// the process ended.
func servesFiles(p listed) bool {
	dir := filepath.Join("/proc", p.name())
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return false
	}
	files, _ := os.ReadDir(filepath.Join(dir, "fd"))
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, "fd", f.Name())); err == nil && to == "/dev/fuse" {
			return true
		}
	}
	return false
}

func namesOf(all []listed) []string {
	names := make([]string, 0, len(all))
	for _, p := range all {
		comm, _ := os.ReadFile(filepath.Join("/proc", p.name(), "comm"))
		names = append(names, strings.TrimSpace(string(comm))+" ("+p.name()+")")
	}
	return names
}
