package lock

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Sharers returns descriptions of the processes other than this one that share the lock of the file at path, such as
// "process 4242 (flock)". A process that examines the lock shares it for a moment; one that keeps it prevents all runs
// from starting.
func Sharers(path string) (all []string) {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for _, pid := range flocks("READ", file) {
		if pid == fmt.Sprint(os.Getpid()) {
			continue
		}
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			name = []byte("which has ended; a process that it started may share it")
		}
		all = append(all, fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(name))))
	}
	return all
}

// flocks returns the processes that hold locks of flock(2) of a kind, on a file or, for "", on any file, from
// /proc/locks.
func flocks(kind, file string) (pids []string) {
	f, err := walk.OpenFile("/proc/locks")
	if err != nil {
		return nil
	}
	defer f.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // 1: FLOCK  ADVISORY  WRITE 4242 00:1a:77 0 EOF
		if len(fields) <= 5 || fields[1] != "FLOCK" || fields[3] != kind || file != "" && fields[5] != file ||
			seen[fields[4]] {
			continue
		}
		seen[fields[4]] = true
		pids = append(pids, fields[4])
	}
	return pids
}
