package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Agent is what a host's newest report says of the agent there.
type Agent struct {
	Host    string    `json:"host"`
	At      time.Time `json:"at"`                // when that run ended, or the host last repeated that nothing changed
	Version string    `json:"version,omitempty"` // of the agent; empty for one that does not say
	// newest form of projects' metadata that it reads; 0 for one that does not say
	Form int `json:"reads_form"`
}

// Agents reads which agents the hosts of all projects had in their newest runs, by host. Reports of before since do not
// count, unless the host has repeated since then that nothing changed, nor does a report that is not about the host in
// whose directory it lies.
func Agents(ctx context.Context, s store.Store, since time.Time) ([]Agent, error) {
	l, err := live(ctx, s, hostkey.List, "", prefix, since)
	if err != nil {
		return nil, err
	}
	var agents []Agent
	for of, r := range l.recorded {
		if r.Agent != "" {
			agents = append(agents, Agent{Host: r.Host, At: r.Seen, Version: r.Agent, Form: r.Form})
			l.answered[of] = true
		}
	}
	runs := l.unanswered()
	found := make([]*Agent, len(runs))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, host := range runs {
		group.Go(func() (err error) {
			found[i], err = newestAgent(within, &reader{store: s, known: l.known}, host, since)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, a := range found {
		if a != nil {
			agents = append(agents, *a)
		}
	}
	slices.SortStableFunc(agents, func(a, b Agent) int { return cmp.Or(cmp.Compare(a.Host, b.Host), a.At.Compare(b.At)) })
	return agents, nil
}

// living are the hosts from which the store got a report or a record since some time. What is asked of a host is
// answered from its signed record where that says it, which takes no request of its own, and otherwise from its
// reports.
type living struct {
	known    hostkey.Registry
	recorded beats // signed records that the store got since then
	runs     []hostRuns
	answered map[string]bool // hosts whose reports do not have to be read
}

// live lists the reports of hosts from which the store got a report or a record after since, and the keys that it
// knows.
func live(ctx context.Context, s store.Store, keys Keys, project, prefix string, since time.Time) (*living, error) {
	known, err := keys(ctx, s)
	if err != nil {
		return nil, err
	}
	beats, err := readBeats(ctx, s, project, known)
	if err != nil {
		return nil, err
	}
	runs, err := listBelow(ctx, s, prefix, since, beats)
	maps.DeleteFunc(beats, func(_ string, r hostrecord.Listed) bool { return !r.Signed || r.Seen.Before(since) })
	return &living{known: known, recorded: beats, runs: runs, answered: map[string]bool{}}, err
}

// unanswered are the hosts whose reports have to be read.
func (l *living) unanswered() []hostRuns {
	return slices.DeleteFunc(l.runs, func(h hostRuns) bool { return l.answered[h.of] })
}

// newestAgent reads a host's newest report; nil where it has none that counts.
func newestAgent(ctx context.Context, d *reader, h hostRuns, since time.Time) (*Agent, error) {
	for _, key := range h.keys[:min(len(h.keys), mostTried)] {
		r, err := d.read(ctx, h.host, key)
		if err != nil {
			return nil, err
		}
		if r != nil && r.Host == h.host && !h.later(r.Ended).Before(since) {
			return &Agent{Host: h.host, At: h.later(r.Ended), Version: r.Agent, Form: r.Form}, nil
		}
	}
	return nil, nil
}
