package main

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// neverHalts returns a warning that the limit of a plan never applies to a number of hosts; "" if it may apply, or if
// there are less than two, so that no other host could be kept from the release.
func neverHalts(ref artifact.Ref, h rollout.Halt, hosts int) string {
	if hosts < 2 || h == (rollout.Halt{}) || h.Reached(hosts, hosts) {
		return ""
	}
	why := fmt.Sprintf("a share counts from %d finished hosts on", rollout.ShareCountsFrom)
	if h.Hosts > 0 {
		why = fmt.Sprintf("it is more than %s", diag.Count(hosts, "host"))
		if h.Share > 0 {
			why += fmt.Sprintf(", and a share counts from %d finished ones on", rollout.ShareCountsFrom)
		}
	}
	return fmt.Sprintf("the limit of failed hosts (%s) never applies to %s of %s, so no failures halt a rollout: %s\n"+
		"hint: corpus project rollout %s %s --halt-at %s", h, diag.Count(hosts, "host"), ref, why, ref.Project, ref.Channel,
		rollout.Default().Halt)
}

// warnOfLimit warns of a limit that never applies to the hosts that follow the channel. Without the right to list them,
// it says nothing: promote warns as well.
func (p *program) warnOfLimit(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref, h rollout.Halt) {
	if neverHalts(ref, h, 2) == "" {
		return // it applies to any number of hosts
	}
	n, err := publisher.View(ctx)
	if err != nil {
		return
	}
	now := n.Client.StoreTime()
	all, err := fleet.Followers(ctx, publisher.Store, hostkey.List, ref, now.Add(-inRoster))
	if err != nil {
		return
	}
	if text := neverHalts(ref, h, len(newBegun(all, now.Add(-inRoster)).roster.Hosts)); text != "" {
		fmt.Fprintf(p.Err, "warning: %s\n", text)
	}
}
