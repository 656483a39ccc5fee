package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listed is a process as /proc lists it.
type listed struct{ pid, parent, group int }

// numbered is a process ID.
type numbered int

func (n numbered) name() string { return strconv.Itoa(int(n)) }

func (p listed) name() string { return numbered(p.pid).name() }

// processes lists the running processes, without zombies.
func processes() []listed {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []listed
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if l, alive := readProcess(pid); alive {
			all = append(all, l)
		}
	}
	return all
}

// readProcess reads the parent and the group of a process, unless it has ended.
func readProcess(pid int) (l listed, alive bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return listed{}, false
	}
	_, after, _ := strings.Cut(string(data[max(0, strings.LastIndexByte(string(data), ')')):]), ") ")
	fields := strings.Fields(after) // state, parent, process group
	if len(fields) < 3 || fields[0] == "Z" || fields[0] == "X" {
		return listed{}, false
	}
	parent, _ := strconv.Atoi(fields[1]) // the kernel writes numbers
	group, _ := strconv.Atoi(fields[2])
	return listed{pid, parent, group}, true
}
