package service

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Answering finds out which process answers at an address of this host.
type Answering struct {
	System   System
	Projects []Project // with the releases that are to answer
}

// At says which process listens on an address: "" where that is not known. It is an error if one does that
// runs from another release of a project, as a process does that was started by hand and left running.
func (a *Answering) At(address netip.AddrPort) (string, error) {
	var pids []int
	var said string
	for _, pid := range a.System.Listeners(address) {
		p := a.System.Process(pid)
		if release, test := a.other(p); release != "" {
			return "", diag.WithHint(fmt.Errorf("process %d (%s) listens on %s and runs from %s, as %s shows: the release may not be what answers", pid, p.Name(), address, release, test),
				"see which unit it belongs to, or whether somebody started it by hand, and end it: systemctl status %d; kill %d", pid, pid)
		}
		if pids = append(pids, pid); said == "" || pids[0] == 1 {
			said = fmt.Sprintf("process %d (%s)", pid, p.Name()) // the init system holds sockets for others
		}
	}
	if said != "" && len(pids) > 1 {
		said += fmt.Sprintf(" and %d more", len(pids)-1)
	}
	return said, nil
}

// other is the release that a process runs from if that is another than the one its project is to run.
func (a *Answering) other(p host.Process) (release, test string) {
	for _, project := range a.Projects {
		if release, test = treesOf(project).evidence(p); release != "" && release != project.Release {
			return strings.TrimSpace(project.Name + " " + release), test
		}
	}
	return "", ""
}
