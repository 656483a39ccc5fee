package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Limits of what the text of a status has of halts: the hosts, the bytes of a reason, of a limit and of a name, and the
// names of hosts. longestGrounds bounds all of it together.
const (
	haltsShown     = 5
	longestWhy     = 300
	longestLimit   = 40
	longestHost    = 100
	groundsNamed   = 8
	longestGrounds = longestWhy + longestLimit + (groundsNamed+1)*longestHost
)

// halts returns the first halt of each host in a list, with its grounds, of at most mostHalts hosts. n is the number of
// all hosts in the list. So one host, which may be stolen, does not hide the halts of others.
func (u *activeRollout) halts(ctx context.Context, s store.Store, all []hosts.Entry) (halts []haltStatus, n int) {
	index := map[string]int{}
	for _, halt := range all {
		at, known := index[halt.Host]
		if !known {
			at, index[halt.Host] = len(index), len(index)
		}
		switch {
		case at >= mostHalts:
		case known:
			halts[at].Count++
		default:
			halts = append(halts, u.haltOf(ctx, s, halt))
		}
	}
	return halts, len(index)
}

// haltOf returns a halt with its grounds.
func (u *activeRollout) haltOf(ctx context.Context, s store.Store, halt hosts.Entry) haltStatus {
	h := haltStatus{Host: halt.Host, At: halt.At, Count: 1}
	if g, err := u.rollout.Grounds(ctx, s, halt); err != nil {
		h.Unread = err.Error()
	} else {
		h.Grounds = &g
	}
	return h
}

// standing returns the first halts that stand now with the number of their hosts, and says of each whether the results
// of the hosts, which they signed, show that the limit is reached and that the release failed on the hosts that it
// names.
func (u *activeRollout) standing(ctx context.Context, s store.Store) (halts []haltStatus, n int) {
	halts, n = u.halts(ctx, s, u.seen.Halts)
	u.addNotFailed(halts)
	failed, finished := u.countFinished()
	if u.within().Halt.Reached(failed, finished) {
		return halts, n
	}
	for i := range halts {
		halts[i].Unfounded = fmt.Sprintf("the store shows that it failed on %d of %s, and the limit is %s. Unless hosts "+
			"have recovered, the plan was changed or the store has lost results, look at this host, whose key may be stolen: "+
			"`corpus host show %s`",
			failed, diag.Count(finished, "finished host"), u.within().Halt, halts[i].Host)
	}
	return halts, n
}

// countFinished returns how many hosts failed, as for a halt that stands now, and how many have finished.
func (u *activeRollout) countFinished() (failed, finished int) {
	for _, said := range u.seen.Results {
		switch {
		case said.Outcome == hosts.Healthy:
			finished++
		case said.At.After(u.rollout.Start.Resumed):
			failed, finished = failed+1, finished+1
		}
	}
	return failed, finished
}

// addNotFailed adds to each halt the hosts that its grounds name without a failed result that counts now.
func (u *activeRollout) addNotFailed(halts []haltStatus) {
	failed := map[string]bool{}
	for _, said := range u.seen.Results {
		failed[said.Host] = said.Outcome != hosts.Healthy
	}
	for i := range halts {
		if g := halts[i].Grounds; g != nil {
			names := slices.Compact(slices.Sorted(slices.Values(g.Hosts)))
			halts[i].NotFailed = slices.DeleteFunc(names, func(host string) bool { return failed[host] })
		}
	}
}

// writeHalts writes the halts that stop the rollout, and those before it was resumed.
func (r rolloutStatus) writeHalts(b *strings.Builder) {
	for _, h := range r.Halts[:min(len(r.Halts), haltsShown)] {
		fmt.Fprintf(b, "  halted by %s at %s: %s\n", h.Host, diag.Stamp(h.At), h.why())
		if len(h.NotFailed) > 0 {
			fmt.Fprintf(b, "    the store has no failed result, or a later healthy one, of hosts that it names: %s\n",
				trust.Printable(named(shortNames(h.NotFailed), groundsNamed)))
		}
		if h.Unfounded != "" {
			fmt.Fprintf(b, "    its grounds do not hold now: %s\n", h.Unfounded)
		}
	}
	moreHalts(b, r.HaltHosts, "")
	for _, h := range r.Past[:min(len(r.Past), haltsShown)] {
		fmt.Fprintf(b, "  halted by %s at %s, before it was resumed: %s\n", h.Host, diag.Stamp(h.At), h.why())
	}
	moreHalts(b, r.PastHosts, ", before it was resumed")
}

// moreHalts writes the number of the hosts with halts that are not shown.
func moreHalts(b *strings.Builder, n int, when string) {
	if more := n - haltsShown; more > 0 {
		fmt.Fprintf(b, "  and halted by %s%s: --json has the first %d\n", diag.Count(more, "more host"), when, mostHalts)
	}
}

// why returns the grounds of a halt as the words of its host, or the reason why there are none.
func (h haltStatus) why() string {
	text := "it gives no grounds"
	switch grounds := h.grounds(); {
	case h.Grounds == nil:
		text = trust.Printable(h.Unread)
	case grounds != "":
		text = "it says " + trust.Printable(fleet.Quoted(grounds))
	}
	if h.Count > 1 {
		text += fmt.Sprintf("; the first of %d halts of this host", h.Count)
	}
	return text
}

// grounds returns the grounds of a halt in the words of its host, shortened; "" if it gives none.
func (h haltStatus) grounds() string {
	g := h.Grounds
	if g == nil || g.Why == "" {
		return ""
	}
	return fmt.Sprintf("%s (limit %s; %s)", hostrecord.Shortened(g.Why, longestWhy),
		hostrecord.Shortened(g.Limit, longestLimit), named(shortNames(g.Hosts), groundsNamed))
}

// shortNames returns the texts that a host gives as names of hosts, each shortened.
func shortNames(all []string) []string {
	short := make([]string, len(all))
	for i, name := range all {
		short[i] = hostrecord.Shortened(name, longestHost)
	}
	return short
}
