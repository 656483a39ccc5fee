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
	"github.com/corpus-agent/corpus-agent/state/host/units"
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
	proven := &ledger.Proven{Pair: pair, Run: r.id, At: r.Time().UTC(), OtherRoot: r.report.OtherRoot}
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
	s, err := r.System()
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
	for _, u := range unserved {
		r.unserves(u.text)
	}
	return result
}

// unserving is a unit that does not run what it proved healthy, or ended since.
type unserving struct {
	unit, text string
	passing    bool // it is on its way up or down, or was not started since the host booted
}

// unserved says which of the units that proved a pair do not run it, or ended since.
func (r *run) unserved(ctx context.Context, proven ledger.Proven) (unserved []unserving, err error) {
	s, members, err := r.deployedUnits(ctx, proven.Pair)
	if err != nil || s == nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(m service.Member) bool { return !proven.Has(m.Unit) })
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
			text := fmt.Sprintf("%s does not run %s: %v", unit.Unit, unit.Release, unit.Err)
			unserved = append(unserved, unserving{unit.Unit, text, failed != nil || passing(d)})
		case failed == nil && d.Restarts > was.Restarts:
			text := fmt.Sprintf("%s ended %s since run %s found it healthy, and was restarted by the init system", unit.Unit, times(d.Restarts-was.Restarts), proven.Run)
			unserved = append(unserved, unserving{unit: unit.Unit, text: text})
		}
	}
	return unserved, err
}

// passing reports whether a unit is down for a reason that says nothing of its program: it is being started or stopped, or
// the host booted and has not started it yet.
func passing(d units.Service) bool {
	starts := d.Active == "activating" && d.Sub != "auto-restart"
	return !d.Running() && (starts || d.Active == "deactivating" || d.Known && d.Began == 0)
}

// unservedBefore looks at the units that proved the deployed pair before states of this run may start them again.
func (r *run) unservedBefore(ctx context.Context, pair ledger.Pair) []unserving {
	proven := r.ledger.Proven
	if r.test || !proven.Proves(&pair) || !proven.Proves(r.ledger.Good) || len(proven.Units) == 0 {
		return nil
	}
	before, err := r.unserved(ctx, *proven)
	if err != nil {
		r.record.Note("whether the units ran %s before it converged was not found out: %v", pair, err)
	}
	return slices.DeleteFunc(before, func(u unserving) bool { return u.passing })
}

// keepUnserved writes into the ledger which of the units that did not run what is deployed before it converged run it now:
// states started them again, and nothing has proven them since.
func (r *run) keepUnserved(ctx context.Context, before []unserving) {
	if len(before) == 0 {
		return
	}
	proven := r.ledger.Proven
	after, err := r.unserved(context.WithoutCancel(ctx), *proven)
	for _, b := range before {
		if err == nil && slices.ContainsFunc(after, func(a unserving) bool { return a.unit == b.unit }) {
			continue
		}
		text := fmt.Sprintf("%s was started again by the states of run %s, which found: %s; to prove it healthy again: corpus-agent deploy --only health", b.unit, r.id, b.text)
		if !slices.ContainsFunc(proven.Unserved, func(known string) bool { return strings.HasPrefix(known, b.unit+" ") }) {
			proven.Unserved = append(proven.Unserved, text)
		}
	}
	if err := r.save(); err != nil {
		r.record.Note("which units have to be proven again was not kept: %v", err)
	}
}

// repeatUnserved has the report say again which units later runs found not to run what is deployed, until a run proves them.
func (r *run) repeatUnserved() {
	if !r.ledger.Proven.Proves(r.ledger.Good) {
		return
	}
	for _, text := range r.ledger.Proven.Unserved {
		r.unserves(text)
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
