package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// This file keeps states that act on the agent's own unit from waiting for the run that they are part of.

// puttingOff is an agent whose states do not act on its unit at once, as service.running with a watch on
// agent.yaml would. after does what they asked for, once the lock is given up.
func (a *Agent) puttingOff(ctx context.Context) (during *Agent, after func()) {
	own := *a
	own.Failures = &site.FailedOutput{}
	own.OwnUnit = &host.OwnUnit{Name: records.ServiceUnit}
	return &own, func() {
		verb := own.OwnUnit.Pending()
		if verb == "" || a.Layout.Relocated() || a.ShuttingDown(ctx) {
			return
		}
		// The run has its report by now: systemd's journal has what comes of this.
		_, _ = site.Systemctl(context.WithoutCancel(ctx), 30*time.Second, "--no-block", string(verb), records.ServiceUnit)
	}
}

// notePassed names the units that were started although they are ordered after the unit in which this run is under way.
func (r *run) notePassed() {
	for _, unit := range r.OwnUnit.AllPassed() {
		r.record.Note("%s was started without waiting for the end of this run, behind which systemd had put it: see After= and Before= of the unit (systemctl show -p After %s)", unit, unit)
	}
}

// freeWaiters looks, once the run is asked to end, for programs of its states that wait for that end
// (systemctl stop corpus-agent), and ends them: each waits for the other otherwise. done ends the search.
func (r *run) freeWaiters(ctx context.Context) (done func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		for {
			for _, pid := range waiters() {
				r.ownStop.Store(true)
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
			select {
			case <-over:
				return
			case <-time.After(time.Second):
			}
		}
	})
	return func() { stop(); close(over) }
}

// freeEvery is how often a run looks for programs that wait for units.
const freeEvery = 5 * time.Second

// freeAwaited lets units start for which a hook or command of this run waits (systemctl restart), and whose start waits for
// the end of the run, since they are ordered after the unit that it is started in: each waits for the other otherwise. done
// ends the search.
func (r *run) freeAwaited(ctx context.Context) (done func()) {
	if r.test || r.Layout.Relocated() || units.Own() == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a run that was asked to end may wait as well
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(freeEvery):
			}
			var names []string
			for _, words := range systemctls() {
				names = append(names, awaited(words)...)
			}
			if len(names) > 0 {
				_ = units.FreeAll(ctx, names, r.OwnUnit) // without systemd nothing waits for it
			}
		}
	}()
	return cancel
}

// awaited are the units for whose start a command line of systemctl waits, as it names them.
func awaited(words []string) (names []string) {
	verb := ""
	for _, word := range words[1:] {
		switch {
		case word == "--no-block":
			return nil
		case strings.HasPrefix(word, "-"):
		case verb == "":
			verb = word
		default:
			names = append(names, word)
		}
	}
	if !slices.Contains([]string{"start", "restart", "try-restart", "reload", "reload-or-restart", "try-reload-or-restart", "condrestart", "force-reload"}, verb) {
		return nil
	}
	return names
}

// waiters are the processes below this one that run systemctl for the agent's unit.
func waiters() (found []int) {
	for pid, words := range systemctls() {
		if slices.ContainsFunc(words, func(w string) bool { return w == records.ServiceUnit || w+".service" == records.ServiceUnit }) {
			found = append(found, pid)
		}
	}
	return found
}

// systemctls are the command lines of the processes below this one that run systemctl.
func systemctls() map[int][]string {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // without /proc there are none to be found
	parents := map[int]int{}
	for _, file := range files {
		pid, parent, ok := parentOf(file)
		if ok {
			parents[pid] = parent
		}
	}
	found := map[int][]string{}
	for pid := range parents {
		if !below(pid, os.Getpid(), parents) {
			continue
		}
		if words := commandLine(pid); filepath.Base(words[0]) == "systemctl" {
			found[pid] = words
		}
	}
	return found
}

// parentOf reads a process and its parent out of a file such as /proc/1/stat. The name of the program,
// in parentheses, may hold anything.
func parentOf(file string) (pid, parent int, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, false // it has ended
	}
	end := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 2 {
		return 0, 0, false
	}
	pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))
	if err != nil {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return pid, parent, err == nil
}

// below reports whether a process descends from another.
func below(pid, ancestor int, parents map[int]int) bool {
	for range len(parents) {
		parent, known := parents[pid]
		if !known || parent == ancestor {
			return known
		}
		pid = parent
	}
	return false
}

// commandLine has at least one word, which is empty for a process that has ended.
func commandLine(pid int) []string {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
}
