package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Why explains a host without asking anybody: why it runs what it runs, who signed that, what
// failed first since, and what to do next.
type Why struct {
	Status
	Reason   string            `json:"reason"`              // why this release
	Signed   []trust.Signature `json:"signed"`              // who signed it
	Failed   string            `json:"failed,omitempty"`    // what failed first in the last run that failed
	FailedIn string            `json:"failed_in,omitempty"` // that run
	Hint     string            `json:"hint,omitempty"`
	Next     []string          `json:"next"` // what to do, most useful first
}

// Why puts together what status, reports and the trust on disk say.
func (a *Agent) Why() (Why, error) {
	s, err := a.Status()
	w := Why{Status: s, Signed: []trust.Signature{}}
	if err != nil {
		return w, err
	}
	if err := a.findSigners(&w); err != nil {
		return w, err
	}
	w.Reason = reason(s)
	if err := a.findFailure(&w); err != nil {
		return w, err
	}
	w.Next = w.advice()
	return w, nil
}

// findSigners looks up who signed what is deployed. What came without the store nobody did.
func (a *Agent) findSigners(w *Why) error {
	if w.Deployed == nil {
		return nil
	}
	for _, release := range w.Deployed.Releases() {
		if release.Local != "" {
			continue
		}
		signature, err := trust.SignatureOf(a.Layout.Trust(), release.Project)
		if err != nil {
			return err
		}
		if signature != nil {
			w.Signed = append(w.Signed, *signature)
		}
	}
	return nil
}

// reason says in one sentence why the host runs what it runs.
func reason(s Status) string {
	switch {
	case s.Deployed == nil && !s.Bootstrapped:
		return "nothing is deployed: this host has not been told whom to trust"
	case s.Deployed == nil:
		return "nothing is deployed: no deploy has succeeded yet"
	case s.Deployed.Service.Local != "":
		return fmt.Sprintf("%s came by %s", s.Deployed.Service, s.Deployed.Service.Local)
	case s.LastRun != nil && s.LastRun.Exit == exit.RolledBack && s.LastRun.To != nil && s.LastRun.Fault != nil && s.LastRun.Fault.Of == report.FaultOfHost:
		return fmt.Sprintf("the host failed the deploy of %s, which was rolled back to it", s.LastRun.To)
	case s.LastRun != nil && s.LastRun.Exit == exit.RolledBack && s.LastRun.To != nil:
		return fmt.Sprintf("%s failed and was rolled back to it", s.LastRun.To)
	case s.LastRun != nil && s.LastRun.Withheld != nil && len(s.Quarantined) > 0:
		var all []string
		for _, b := range s.Quarantined {
			all = append(all, b.What())
		}
		return fmt.Sprintf("the channels name %s, of which this host does not deploy what is quarantined: %s", s.LastRun.Withheld, strings.Join(all, ", "))
	case s.Hold != nil:
		return strings.TrimSuffix("this host is held, so newer releases wait: "+s.Hold.Reason, ": ")
	case s.LastRun != nil && s.LastRun.Exit == exit.Unreachable:
		return "it was current when the store was last reached"
	case len(s.Channels) == 0:
		return "it was deployed last"
	}
	var names []string
	for _, c := range s.Channels {
		names = append(names, c.String())
	}
	return "it is what " + strings.Join(names, " and ") + " named when the store was last asked"
}

// findFailure looks for the newest run that failed since what is deployed was deployed.
func (a *Agent) findFailure(w *Why) error {
	ids, err := a.archive().IDs()
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		r, err := a.archive().Load(id)
		if err != nil {
			return err
		}
		if w.Since != nil && r.Ended.Before(*w.Since) {
			return nil
		}
		if r.Exit != exit.OK && a.concerns(r) {
			w.Failed, w.FailedIn, w.Hint = firstFailure(r), r.ID, r.Hint
			return nil
		}
	}
	return nil
}

// firstFailure says what of a run failed first: a state, a hook, a probe, or a stage.
func firstFailure(r *report.Report) string {
	if s := r.FirstFailure(); s != nil {
		return fmt.Sprintf("%s %s (%s in %s): %s", s.Function, s.Name, s.ID, s.SLS, s.Comment)
	}
	for _, stage := range slices.Sorted(maps.Keys(r.Hooks)) {
		for _, h := range r.Hooks[stage] {
			if h.Error != "" {
				return fmt.Sprintf("%s hook %s: %s", stage, h.Name, h.Error)
			}
		}
	}
	for _, p := range r.Health {
		if p.Error != "" {
			return fmt.Sprintf("health %s: %s", p.Probe, p.Error)
		}
	}
	for _, stage := range r.Stages {
		if stage.Error != "" {
			return stage.Name + ": " + stage.Error
		}
	}
	return r.Error
}

// advice is what a person can do, by what the host is like.
func (w Why) advice() []string {
	next := []string{}
	say := func(when bool, text string) {
		if when {
			next = append(next, text)
		}
	}
	say(w.Running != nil, "wait: a run is under way")
	say(w.Hint != "", w.Hint)
	say(w.FailedIn != "", "corpus-agent report "+w.FailedIn)
	say(w.CutShort != nil, "corpus-agent deploy takes up the run that was cut short")
	say(w.Deployed == nil && !w.Bootstrapped, "corpus-agent deploy --store URL --trust-root root.json")
	say(w.Hold != nil, "corpus-agent unhold lets new releases in again")
	if len(w.Quarantined) > 0 {
		last := ledger.Release(w.Quarantined[len(w.Quarantined)-1])
		say(true, fmt.Sprintf("publish a corrected version of %s, or retry it: corpus-agent unquarantine %s", last.Project, last.Version))
	}
	if p := w.Postponed; p != nil {
		say(true, fmt.Sprintf("see what is wrong with the host; %s is retried at %s, or at the next run after: corpus-agent unquarantine %s",
			p.Pair, p.Next.Local().Format("2006-01-02 15:04:05"), p.Pair.Service.Version))
	}
	say(len(w.Drift) > 0 && w.Running == nil, "corpus-agent converge")
	return next
}
