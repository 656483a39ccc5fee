package fleet

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Agent describes the agent of a host, from the host's newest report.
type Agent struct {
	Host    string    `json:"host"`
	At      time.Time `json:"at"`                // when that run ended, or the host last repeated that nothing changed
	Version string    `json:"version,omitempty"` // of the agent; empty if the report has none
	// newest form of projects' metadata that it reads; 0 if the report has none
	Form int `json:"reads_form"`
}

// Agents returns the agents of the hosts of all projects in their newest runs, by host. It ignores reports from before
// since, unless the host has renewed its record since then, reports in the directory of another host, and those of a
// host that a person removed.
func Agents(ctx context.Context, s store.Store, since time.Time) ([]Agent, error) {
	l, err := live(ctx, s, hostkey.List, "", since)
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
	runs, err := l.unanswered(ctx, s, prefix)
	if err != nil {
		return nil, err
	}
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

// newestAgent reads a host's newest valid report; nil if it has none.
func newestAgent(ctx context.Context, d *reader, h hostRuns, since time.Time) (*Agent, error) {
	for _, key := range h.keys[:min(len(h.keys), mostTried)] {
		r, err := d.read(ctx, h.host, key)
		if err != nil {
			return nil, err
		}
		if r != nil && r.Host == h.host && !h.later(r.Ended).Before(since) {
			if d.forgotten(h, r) {
				return nil, nil
			}
			return &Agent{Host: h.host, At: h.later(r.Ended), Version: r.Agent, Form: r.Form}, nil
		}
	}
	return nil, nil
}
