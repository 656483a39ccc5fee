package service

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/processes"
)

// Answering determines which process responds at an address of this host, and whether its response is one of a release.
type Answering struct {
	System   System
	Projects []Project // with the releases that should answer
	Units    []string  // whose processes may answer: those of the releases, and those that their probes name
}

// Connection is a connection of a probe to an address of this host.
type Connection struct{ From, To netip.AddrPort }

// Occupied is the error of a port of the release on which a process outside of the release's units listens. It is not a
// fault of the release.
type Occupied struct {
	Address netip.AddrPort
	PID     int    // 0 if no process has the socket open
	Program string // with the script of an interpreter
	User    string // the user of the process, or who created the socket
	Unit    string // that it belongs to; "" for none
	Release string // of the project that it runs; "" for none
	Test    string // the test that shows it
}

func (o *Occupied) Error() string {
	text := fmt.Sprintf("a socket of user %s, which no process has open,", o.User)
	if o.PID != 0 {
		text = fmt.Sprintf("process %d (%s) of user %s", o.PID, o.Program, o.User)
		if o.Unit != "" {
			text += " in " + o.Unit
		}
	}
	text += fmt.Sprintf(" listens on %s and belongs to no unit of the release", o.Address)
	if o.Release != "" {
		text += fmt.Sprintf("; it runs from %s, as %s shows", o.Release, o.Test)
	}
	return text
}

// Hint returns what a person can do about it.
func (o *Occupied) Hint() string { return diag.Process.Coded(o.remedy()) }

func (o *Occupied) remedy() string {
	switch {
	case o.PID == 0:
		return "find what user " + o.User + " runs: ps -u " + o.User
	case o.Unit != "":
		return fmt.Sprintf(
			"if %s is to answer, name it under units of corpus.yaml or in a unit probe; else end it: systemctl status %d; "+
				"systemctl stop %s", o.Unit, o.PID, o.Unit)
	}
	return fmt.Sprintf("see whether it was started by hand, and end it: systemctl status %d; kill %d", o.PID, o.PID)
}

// At returns which process listens at the target of a connection, or "" if that is unknown, as for the port of a
// container. It returns an error if that process runs from another release of a project. For a probe of a release it
// returns an *Occupied if an unprivileged user could have started the process: the process is in none of the units, and
// its socket is not root's. The connection must still be open.
func (a *Answering) At(ctx context.Context, c Connection, ofRelease bool) (string, error) {
	sockets, local := a.sockets(c)
	if len(sockets) == 0 && local && ofRelease {
		return "", fmt.Errorf("what listened on %s closed its socket before it could be seen", c.To)
	}
	own, err := a.cgroups(ctx)
	if err != nil {
		return "", err
	}
	var pids []int
	var said string
	for _, socket := range sockets {
		if err := a.judge(socket, own, ofRelease); err != nil {
			return "", err
		}
		for _, pid := range socket.Holders {
			if pids = append(pids, pid); said == "" || pids[0] == 1 { // the init system holds sockets for others
				said = fmt.Sprintf("process %d (%s)", pid, a.System.Process(pid).Name())
			}
		}
	}
	if said != "" && len(pids) > 1 {
		said += fmt.Sprintf(" and %d more", len(pids)-1)
	}
	return said, nil
}

// sockets returns the sockets that listen at the target of a connection, or else the socket at its other end: the
// listener may have been closed since. local reports whether the other end is on this host.
func (a *Answering) sockets(c Connection) (sockets []processes.Socket, local bool) {
	from, to := plain(c.From), plain(c.To)
	all := a.System.Sockets(func(s processes.Socket) bool { return s.Takes(to) || s.Local == to && s.Remote == from })
	listens := structsort.Without(all, func(s processes.Socket) bool { return !s.Listens })
	if len(listens) > 0 {
		return listens, true
	}
	local = len(all) > 0
	return structsort.Without(all, func(s processes.Socket) bool { return len(s.Holders) == 0 }), local
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// judge returns an error if a socket should not answer for the release.
func (a *Answering) judge(s processes.Socket, own *cgroups, ofRelease bool) error {
	inside := slices.ContainsFunc(s.Holders, func(pid int) bool { return own.has(pid, a.System.Process(pid).Cgroup) })
	for _, pid := range s.Holders {
		release, test := a.other(a.System.Process(pid))
		switch {
		case release == "":
		case inside:
			return diag.Process.Hint(
				fmt.Errorf("process %d (%s) listens on %s and runs from %s, as %s shows: the release may not be what answers", pid,
					a.System.Process(pid).Name(), s.Local, release, test),
				"it is left of an earlier start of its unit; end it: systemctl status %d; kill %d", pid, pid)
		default:
			return a.occupied(s, pid, release, test)
		}
	}
	if inside || s.User == 0 || !ofRelease || !own.known {
		return nil
	}
	if len(s.Holders) == 0 {
		return a.occupied(s, 0, "", "")
	}
	return a.occupied(s, s.Holders[0], "", "")
}

// occupied returns the error with the process that has a socket.
func (a *Answering) occupied(s processes.Socket, pid int, release, test string) *Occupied {
	o := &Occupied{Address: s.Local, PID: pid, User: processes.UserName(s.User), Release: release, Test: test}
	if pid != 0 {
		p := a.System.Process(pid)
		o.Program, o.Unit = p.Name(), unitOf(p.Cgroup)
		if p.User != processes.NoUser {
			o.User = processes.UserName(p.User)
		}
	}
	return o
}

// unitOf returns the unit of a control group; "" for one of a user's session.
func unitOf(cgroup string) string {
	for part := range strings.SplitSeq(strings.TrimPrefix(cgroup, "/"), "/") {
		switch path.Ext(part) {
		case ".service":
			return part
		case ".slice":
			if part == "user.slice" {
				return ""
			}
		}
	}
	return ""
}

// other returns the release that a process runs from, if its project should run another one.
func (a *Answering) other(p processes.Process) (release, test string) {
	for _, project := range a.Projects {
		if release, test = treesOf(project).evidence(p); release != "" && release != project.Release {
			return strings.TrimSpace(project.Name + " " + release), test
		}
	}
	return "", ""
}

// Occupant returns a process of an unprivileged user that has one of the ports and belongs to no unit of the release;
// nil if there is none. A connected socket counts as well if nothing listens on its port.
func (a *Answering) Occupant(ctx context.Context, ports []uint16) (*Occupied, error) {
	own, err := a.cgroups(ctx)
	if err != nil || !own.known || len(ports) == 0 {
		return nil, err
	}
	all := a.System.Sockets(func(s processes.Socket) bool { return slices.Contains(ports, s.Local.Port()) })
	structsort.Func(all, func(x, y processes.Socket) int { return order(y.Listens) - order(x.Listens) })
	listens := map[uint16]bool{}
	for _, s := range all {
		if !s.Listens && (len(s.Holders) == 0 || listens[s.Local.Port()]) {
			continue
		}
		var stranger *Occupied
		if errors.As(a.judge(s, own, true), &stranger) {
			return stranger, nil
		}
		listens[s.Local.Port()] = true
	}
	return nil, nil
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// cgroups holds the control groups of units, and their main processes.
type cgroups struct {
	known bool // the init system uses control groups
	names []string
	main  []int
}

func (a *Answering) cgroups(ctx context.Context) (*cgroups, error) {
	d, err := describe(ctx, a.System, "-.slice")
	if err != nil || !d.Known {
		return &cgroups{}, err
	}
	c := &cgroups{known: true}
	for _, unit := range a.Units {
		d, err := describe(ctx, a.System, unit)
		if err != nil {
			return nil, err
		}
		if d.Cgroup != "" && d.Cgroup != "/" {
			c.names = append(c.names, d.Cgroup)
		}
		if d.MainPID != 0 {
			c.main = append(c.main, d.MainPID)
		}
	}
	return c, nil
}

func (c *cgroups) has(pid int, cgroup string) bool {
	return slices.Contains(c.main, pid) || slices.ContainsFunc(c.names, func(name string) bool {
		return below(cgroup, name)
	})
}
