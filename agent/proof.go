package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
)

// This file keeps the proof that a pair was healthy. Only a run that asked the units and probes of the pair
// gives one; the reports of later runs repeat it while the host has the pair, and say where its units do not
// run it any more.

// healthy waits for a pair to become healthy, and keeps the proof that it did.
func (r *run) healthy(ctx context.Context, pair ledger.Pair) error {
	if !r.only.Has(procedure.Health) {
		return nil
	}
	r.ledger.Proven = nil
	if err := r.checkHealth(ctx, pair); err != nil {
		return err
	}
	proven := &ledger.Proven{Pair: pair, Run: r.id, At: r.now().UTC(), OtherRoot: r.report.OtherRoot}
	if r.watch != nil {
		for _, m := range r.watch.Members {
			if d, err := r.watch.System.Service(ctx, m.Unit); err == nil {
				proven.Units = append(proven.Units, ledger.ProvenUnit{Unit: m.Unit, Restarts: d.Restarts})
			}
		}
	}
	if err := r.proveOthers(ctx, pair, proven); err != nil {
		r.record.Note("whether all units run %s was not found out: %v", pair, err)
	}
	r.ledger.Proven = proven
	return nil
}

// unserves has the report say of a unit that it does not run what is deployed.
func (r *run) unserves(text string) {
	r.record.Note("%s", text)
	r.record.Complete(func(rep *report.Report) {
		if !slices.Contains(rep.Unserved, text) {
			rep.Unserved = append(rep.Unserved, text)
		}
	})
}

// healthyNow asks whether the deployed pair is healthy, in a run that put nothing into service.
func (r *run) healthyNow(ctx context.Context, pair ledger.Pair) error {
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
	if err := r.healthy(ctx, pair); err != nil {
		return err
	}
	return r.save()
}

// deployedUnits are the units of a pair that links lead to; none where units are not this host's.
func (r *run) deployedUnits(ctx context.Context, pair ledger.Pair) (service.System, []service.Member, error) {
	s, err := r.system()
	if err != nil || s.Allowed() != nil {
		return nil, nil, err
	}
	members, err := r.members(ctx, s, pair)
	return s, members, err
}

// watchOver is the watch over units that this run did nothing about; nil for none.
func (r *run) watchOver(s service.System, members []service.Member) *service.Watch {
	if len(members) == 0 {
		return nil
	}
	w := &service.Watch{System: s, Members: members, Since: r.began}
	for _, m := range members {
		did := service.Kept
		if m.Reload {
			did = service.Reloaded
		}
		w.Done = append(w.Done, service.Result{Unit: m.Unit, Action: did})
	}
	return w
}

// stillServes looks, after a run that deployed nothing, whether the units that proved the deployed pair
// healthy still run it. It asks no probe, and what it finds is no failure of the run.
func (r *run) stillServes(ctx context.Context, result error) error {
	proven := r.ledger.Proven
	if result != nil || r.test || stopped(ctx) || !proven.Proves(r.ledger.Good) || len(proven.Units) == 0 {
		return result
	}
	unserved, err := r.unserved(ctx, *proven)
	if err != nil {
		r.record.Note("whether the units still run %s was not found out: %v", r.ledger.Good, err)
	}
	for _, text := range unserved {
		r.record.Note("%s", text)
	}
	r.record.Complete(func(rep *report.Report) { rep.Unserved = unserved })
	return result
}

// unserved says which of the units that proved a pair do not run it, or ended since.
func (r *run) unserved(ctx context.Context, proven ledger.Proven) (unserved []string, err error) {
	s, members, err := r.deployedUnits(ctx, proven.Pair)
	if err != nil || s == nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(m service.Member) bool {
		return !slices.ContainsFunc(proven.Units, func(u ledger.ProvenUnit) bool { return u.Unit == m.Unit })
	})
	w := r.watchOver(s, members)
	if w == nil {
		return nil, nil
	}
	if err := w.Begin(ctx); err != nil {
		return nil, err
	}
	seen, err := w.Look(ctx)
	for _, unit := range seen {
		was := proven.Units[slices.IndexFunc(proven.Units, func(u ledger.ProvenUnit) bool { return u.Unit == unit.Unit })]
		d, failed := s.Service(ctx, unit.Unit)
		switch {
		case unit.Err != nil:
			unserved = append(unserved, fmt.Sprintf("%s does not run %s: %v", unit.Unit, unit.Release, unit.Err))
		case failed == nil && d.Restarts > was.Restarts:
			unserved = append(unserved, fmt.Sprintf("%s ended %s since run %s found it healthy, and was restarted by the init system", unit.Unit, times(d.Restarts-was.Restarts), proven.Run))
		}
	}
	return unserved, err
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// inQuarantine are the releases that this host does not deploy, as a report names them.
func (r *run) inQuarantine() []report.Quarantined {
	var all []report.Quarantined
	for _, b := range r.ledger.Bad {
		if b.Release != nil {
			all = append(all, report.Quarantined{Release: *b.Release, Reason: r.record.Show(strings.TrimSpace(b.Reason)), Run: b.Run})
		}
	}
	return all
}
