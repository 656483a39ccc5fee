package serving

import (
	"context"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
)

// This file keeps the proof that a pair is healthy. Only a run that watched the units and asked the probes of the pair
// records a proof. The reports of later runs repeat it while the pair is deployed, and name the units that no longer
// run it.

// Healthy waits until a pair is healthy, and records the proof in the ledger. Without AsksHealth it does nothing.
func (r *Run) Healthy(ctx context.Context, pair ledger.Pair) error {
	if !r.AsksHealth() {
		return nil
	}
	r.Ledger.Proven = nil
	if err := r.checkHealth(ctx, pair); err != nil {
		return err
	}
	if err := r.statesUnitsRun(ctx, pair); err != nil {
		return err
	}
	proven := &ledger.Proven{Pair: pair, Run: r.ID, At: r.Host.Time().UTC(), OtherRoot: r.Host.Layout.Relocated()}
	if r.watch != nil {
		for _, m := range r.watch.Members {
			if d, err := r.watch.System.Service(ctx, m.Unit); err == nil {
				proven.Units = append(proven.Units, ledger.ProvenUnit{Unit: m.Unit, Restarts: d.Restarts})
			}
		}
	}
	if err := r.proveOthers(ctx, pair, proven); err != nil {
		r.Record.Note("cannot determine whether all units run %s: %v", pair, err)
	}
	r.Ledger.Proven = proven
	return nil
}

// unserves adds to the report that a unit does not run what is deployed. The text is added once.
func (r *Run) unserves(text string) {
	r.Record.Note("%s", text)
	r.Record.Complete(func(rep *report.Report) {
		if !slices.Contains(rep.Unserved, text) {
			rep.Unserved = append(rep.Unserved, text)
		}
	})
}

// HealthyNow checks whether the deployed pair is healthy, in a run that put nothing into service.
func (r *Run) HealthyNow(ctx context.Context, pair ledger.Pair) error {
	s, members, err := r.deployedUnits(ctx, pair)
	if err != nil {
		return err
	}
	var asked []service.Member
	for _, m := range members {
		d, err := s.Service(ctx, m.Unit)
		if err != nil {
			return err
		}
		if d.Running() || m.Named && d.Found {
			asked = append(asked, m)
		}
	}
	r.watch = r.watchOver(s, asked)
	if err := r.Healthy(ctx, pair); err != nil {
		return err
	}
	return r.Save()
}

// deployedUnits returns the units of a pair that the links lead to, and none where the agent may not act on the units
// of this host, as below a root.
func (r *Run) deployedUnits(ctx context.Context, pair ledger.Pair) (service.System, []service.Member, error) {
	s, err := r.Host.System()
	if err != nil || s.Allowed() != nil {
		return nil, nil, err
	}
	members, err := r.members(ctx, s, pair)
	return s, members, err
}

// watchOver returns a watch over units that this run did not act on; nil for no units.
func (r *Run) watchOver(s service.System, members []service.Member) *service.Watch {
	if len(members) == 0 {
		return nil
	}
	w := &service.Watch{System: s, Members: members, Since: r.Began}
	for _, m := range members {
		did := service.Kept
		if m.Reload {
			did = service.Reloaded
		}
		w.Done = append(w.Done, service.Result{Unit: m.Unit, Action: did})
	}
	return w
}
