//go:build hosts

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ready waits until the host has settled: every unit that starts at boot is active or failed.
func (h *Host) Ready(within time.Duration) {
	h.t.Helper()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if h.leader = h.init(); h.leader == 0 {
			continue
		}
		out, _ := h.enter("systemctl", "is-system-running").Output() // the state is in the output, too
		if s := strings.TrimSpace(string(out)); s == "running" || s == "degraded" {
			return
		}
	}
	jobs := []byte("it has no init")
	if h.leader != 0 {
		jobs, _ = h.enter("systemctl", "list-jobs").CombinedOutput() // only for the message
	}
	h.t.Fatalf("%s did not boot:\n%s%s", h.Name, tail(h.console.String(), 30), jobs)
}

// init returns the ID of the host's first process, or 0. nspawn's first child, which is not in the host, starts it.
func (h *Host) init() int {
	pid := h.nspawn.Process.Pid
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	for _, child := range strings.Fields(string(data)) {
		there, err := os.Readlink("/proc/" + child + "/ns/pid")
		if here, _ := os.Readlink("/proc/self/ns/pid"); err == nil && there != here {
			n, _ := strconv.Atoi(child)
			return n
		}
	}
	return 0
}

// enter prepares a command inside the host, outside of its units.
func (h *Host) enter(argv ...string) *exec.Cmd {
	args := slices.Concat([]string{"-t", strconv.Itoa(h.leader), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "env",
		"-i",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}, argv)
	return exec.Command("nsenter", args...)
}

// Result is the result of a command on a host.
type Result struct {
	Out  string
	Err  string
	Code int
}

// Run runs a command on the host in a separate unit, as a service.
func (h *Host) Run(argv ...string) Result {
	h.t.Helper()
	if h.leader == 0 {
		h.t.Fatalf("%s is down", h.Name)
	}
	var out, errs bytes.Buffer
	cmd := h.enter(append([]string{"systemd-run", "-q", "--pipe", "--wait", "--collect"}, argv...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		h.t.Fatalf("%s on %s: %v", strings.Join(argv, " "), h.Name, err)
	}
	r := Result{Out: out.String(), Err: errs.String()}
	if failed != nil {
		r.Code = failed.ExitCode()
	}
	return r
}

// Must runs a command that has to succeed, and returns its output.
func (h *Host) Must(argv ...string) string {
	h.t.Helper()
	r := h.Run(argv...)
	if r.Code != 0 {
		h.t.Fatalf("%s on %s: exit code %d\n%s\n%s", strings.Join(argv, " "), h.Name, r.Code, tail(r.Out, 40),
			tail(r.Err, 40))
	}
	return r.Out
}

// Sh runs a line of shell that has to succeed, and returns its output without the last newline.
func (h *Host) Sh(line string) string {
	h.t.Helper()
	return strings.TrimRight(h.Must("sh", "-ec", line), "\n")
}
