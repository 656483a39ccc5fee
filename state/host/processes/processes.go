// Package processes reads the processes of a host, and the sockets that they hold, from the kernel.
package processes

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Process describes a process. A field that may not be read is empty.
type Process struct {
	Program   string // the file that runs
	Directory string // its working directory
	Arguments []string
	// User is the ID of its user; 0 only if all of its user IDs are 0.
	User   int
	Cgroup string // such as /system.slice/app.service
}

// Name returns the name of a process for messages: its program, and for an interpreter the script that it runs.
func (p Process) Name() string {
	name := p.Program
	if len(p.Arguments) > 1 && filepath.IsAbs(p.Arguments[1]) {
		name += " " + p.Arguments[1]
	}
	return cmp.Or(name, "its program may not be read")
}

// Of describes a process of the running system. A process that has ended, or may not be read, has the user NoUser.
func Of(pid int) Process {
	dir := fmt.Sprintf("/proc/%d/", pid)
	p := Process{User: userOf(dir), Cgroup: unitCgroup(CgroupOf(dir), CgroupOf("/proc/1/"))}
	p.Program, _ = os.Readlink(dir + "exe")
	p.Directory, _ = os.Readlink(dir + "cwd")
	data, _ := os.ReadFile(dir + "cmdline")
	for arg := range bytes.SplitSeq(bytes.TrimRight(data, "\x00"), []byte{0}) {
		p.Arguments = append(p.Arguments, string(arg))
	}
	return p
}

// NoUser is the user of a process that cannot be read.
const NoUser = -1

// userOf returns the first user ID of a process that is not 0, of the real, effective, saved and filesystem user IDs.
// It returns 0 if all are 0.
func userOf(dir string) int {
	data, _ := os.ReadFile(dir + "status")
	for line := range strings.Lines(string(data)) {
		ids, found := strings.CutPrefix(line, "Uid:")
		if !found {
			continue
		}
		for _, text := range strings.Fields(ids) {
			if id, err := strconv.Atoi(text); err != nil || id != 0 {
				return id
			}
		}
		return 0
	}
	return NoUser
}

// UserName returns the name of a user, or the ID if it has none.
func UserName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return strconv.Itoa(id)
}

// unitCgroup returns a control group relative to the root of the init system's hierarchy. In a container that has no
// cgroup namespace of its own, or for a process that entered one from outside, the kernel's path of a group begins at a
// group above that root.
func unitCgroup(cgroup, ofInit string) string {
	above, found := strings.CutSuffix(ofInit, "/init.scope")
	if rest, inside := strings.CutPrefix(cgroup, above+"/"); found && inside {
		return "/" + rest
	}
	return cgroup
}

// CgroupOf returns the control group of the process with the given /proc directory: that of version 2, or that of
// systemd's own hierarchy of version 1 if version 2 is not in use.
func CgroupOf(dir string) string {
	data, _ := os.ReadFile(dir + "cgroup")
	return cgroupIn(string(data))
}

func cgroupIn(text string) string {
	found := ""
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[0] != "0" && parts[1] != "name=systemd" {
			continue
		}
		if found == "" || found == "/" || parts[0] == "0" && parts[2] != "/" {
			found = parts[2]
		}
	}
	return found
}
