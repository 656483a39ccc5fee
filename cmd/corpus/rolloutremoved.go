package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// addRemoved adds the hosts with a result of which the store has no record any more. known are the hosts of the
// project; nil if they could not be read.
func (u *activeRollout) addRemoved(r *rolloutStatus, known []fleet.Host) {
	if known == nil || u.rollout.Start.Aborted {
		return
	}
	there := map[string]bool{}
	for _, h := range known {
		there[h.Host] = true
	}
	for _, said := range u.seen.Results {
		switch {
		case u.others[said.Host]:
			r.Replaced = append(r.Replaced, said.Host)
		case there[said.Host]:
		default:
			r.Removed = append(r.Removed, said.Host)
		}
	}
}

// writeRemoved writes the hosts that were removed after they recorded their results.
func (r rolloutStatus) writeRemoved(w io.Writer) {
	if n := len(r.Removed); n > 0 {
		fmt.Fprintf(w, "  no record in the store any more of %s, of which the results count: %s\n", diag.Count(n, "host"),
			strings.Join(r.Removed[:min(n, mostNamed)], ", "))
	}
}
