package main

import (
	"cmp"
	"fmt"

	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// nextWithoutPlaces returns what comes next if every wave is open, and each host that waits is in a cluster of which
// other hosts hold all places; "" otherwise.
func (u *activeRollout) nextWithoutPlaces(holders []hosts.Holder, waiting int) string {
	if len(holders) == 0 || u.waitsAt() < len(u.plan.Waves) {
		return ""
	}
	taken, holds, names := map[string]int{}, map[string]bool{}, []string{}
	for _, h := range holders {
		taken[h.Cluster]++
		holds[h.Host] = true
		names = append(names, h.Host)
	}
	recorded, places, blocked := u.recorded(), map[string]int{}, false
	for _, h := range u.rollout.Roster.Places() {
		cluster := cmp.Or(h.Cluster, "-")
		if _, known := places[cluster]; !known {
			places[cluster] = u.rollout.Places(h)
		}
		if recorded[h.Name] || holds[h.Name] {
			continue
		}
		if blocked = true; places[cluster] == 0 || taken[cluster] < places[cluster] {
			return ""
		}
	}
	if !blocked {
		return ""
	}
	return fmt.Sprintf("%s without a result: all places of their clusters are taken, by %s", diag.Count(waiting, "host"),
		named(names, mostOnLine))
}
