package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
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
	Settled  bool              `json:"settled,omitempty"`   // runs since then succeeded, and nothing is kept away for it
	Hint     string            `json:"hint,omitempty"`      // of that run, unless it is settled
	Next     []string          `json:"next"`                // what to do, most useful first
}

// Why puts together what status, reports and the trust on disk say.
func (a *Agent) Why() (Why, error) {
	w, err := a.explain()
	return w, a.forLook(err)
}

func (a *Agent) explain() (Why, error) {
	s, err := a.Status()
	w := Why{Status: s, Signed: []trust.Signature{}}
	if err != nil {
		return w, err
	}
	if err := a.findSigners(&w); err != nil {
		return w, err
	}
	last, err := a.lastLook()
	if err != nil {
		return w, err
	}
	w.Reason = reason(s, last)
	if err := a.findFailure(&w); err != nil {
		return w, err
	}
	w.Next = w.advice(namedBy(last))
	return w, nil
}

// findSigners looks up who signed what is deployed. What came without the store nobody did.
func (a *Agent) findSigners(w *Why) error {
	runs := w.runs()
	if runs == nil {
		return nil
	}
	for _, release := range runs.Releases() {
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

// reason says in one sentence why the host runs what it runs: because its channels name it, or else what they
// name and why that is not deployed. last is the newest run that looked at what is to run.
func reason(s Status, last *report.Report) string {
	switch {
	case s.Deployed == nil && s.BaseAlone != nil:
		return fmt.Sprintf("no deploy of the service has succeeded yet; %s converges alone", s.BaseAlone)
	case s.Deployed == nil && !s.Bootstrapped:
		return "nothing is deployed: this host has no root of trust"
	case s.Deployed == nil:
		return "nothing is deployed: no deploy has succeeded yet"
	case s.Deployed.Service.Local != "":
		return fmt.Sprintf("%s came by %s", s.Deployed.Service, s.Deployed.Service.Local)
	case last != nil && last.Exit == exit.RolledBack && last.To != nil && last.Fault != nil && last.Fault.Of == report.FaultOfHost:
		return fmt.Sprintf("the host failed the deploy of %s, which was rolled back to it", last.To)
	case last != nil && last.Leaves != nil && last.Leaves.Same(*s.Deployed) && last.To != nil:
		return fmt.Sprintf("the rollback to %s in run %s failed, and the host went back to it", last.To, last.ID)
	case last != nil && last.Exit == exit.RolledBack && last.To != nil:
		return fmt.Sprintf("%s, which the channels name, failed in run %s and was rolled back to it", last.To, last.ID)
	}
	if named := namedBy(last); named != nil && !named.Same(*s.Deployed) {
		return notDeployed(s, last, *named)
	}
	switch {
	case last != nil && last.Exit == exit.Unreachable:
		return "it was current when the store was last reached"
	case s.Hold != nil:
		return strings.TrimSuffix("this host is held, so newer releases wait: "+s.Hold.Reason, ": ")
	case len(s.Channels) == 0:
		return "it was deployed last"
	}
	return "it is what " + channelNames(s) + " named when the store was last asked"
}

// namedBy is what the channels named in a run; nil where the run did not find out.
func namedBy(r *report.Report) *ledger.Pair {
	switch {
	case r == nil:
		return nil
	case r.Withheld != nil:
		return r.Withheld
	case r.Command == "rollback" && r.Leaves != nil:
		return r.Leaves // it was deployed because the channels named it
	}
	return r.To
}

// notDeployed says what the channels name, and why the host does not run it.
func notDeployed(s Status, last *report.Report, named ledger.Pair) string {
	text := fmt.Sprintf("%s named %s when the store was last asked, which this host does not run: ", channelNames(s), named)
	var bad []string
	for _, b := range s.Quarantined {
		if b.Covers(named) {
			bad = append(bad, fmt.Sprintf("%s is quarantined (%s)", b.What(), b.Reason))
		}
	}
	switch p := s.Postponed; {
	case len(bad) > 0:
		return text + strings.Join(bad, ", ")
	case s.Hold != nil:
		return text + strings.TrimSuffix("the host is held: "+s.Hold.Reason, ": ")
	case p != nil && p.Pair.Same(named):
		return text + "the host failed its deploy, which is retried"
	case last.Outcome == report.Interrupted:
		return text + "run " + last.ID + " was interrupted; the next run deploys it"
	}
	return text + fmt.Sprintf("run %s ended with %q", last.ID, last.Outcome)
}

func channelNames(s Status) string {
	var names []string
	for _, c := range s.Channels {
		names = append(names, c.String())
	}
	if len(names) == 0 {
		return "the channels"
	}
	return strings.Join(names, " and ")
}

// lastLook is the newest run that found out what the channels name, or that a person asked for; nil for none.
func (a *Agent) lastLook() (*report.Report, error) {
	ids, err := a.Reports().IDs()
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		r, err := a.Reports().Load(id)
		if err != nil {
			return nil, err
		}
		if a.Concerns(r) && (r.To != nil || r.Exit == exit.Unreachable) {
			return r, nil
		}
	}
	return nil, nil
}

// findFailure looks for the newest run that failed since what is deployed was deployed.
func (a *Agent) findFailure(w *Why) error {
	ids, err := a.Reports().IDs()
	if err != nil {
		return err
	}
	succeeded := false
	for _, id := range slices.Backward(ids) {
		r, err := a.Reports().Load(id)
		if err != nil {
			return err
		}
		if w.Since != nil && r.Ended.Before(*w.Since) {
			return nil
		}
		if r.Exit != exit.OK && a.Concerns(r) {
			w.Failed, w.FailedIn = firstFailure(r), r.ID
			if p := w.Postponed; p != nil && p.Run == r.ID && failedHook(r) != "" {
				w.Failed = p.Reason // which says why the host did not start a hook
			}
			if w.Settled = succeeded && !w.keepsAway(r.ID); !w.Settled {
				w.Hint = r.Hint
			}
			return nil
		}
		succeeded = succeeded || r.Command == "deploy" && a.Concerns(r)
	}
	return nil
}

// keepsAway reports whether something is still not deployed because of a run.
func (w Why) keepsAway(run string) bool {
	return slices.ContainsFunc(w.Quarantined, func(b ledger.Bad) bool { return b.Run == run }) || w.Postponed != nil && w.Postponed.Run == run
}

// firstFailure says what of a run failed first: a state, a hook, a probe, or a stage.
func firstFailure(r *report.Report) string {
	if first := failedHook(r); first != "" {
		return first
	}
	if s := r.FirstFailure(); s != nil {
		return fmt.Sprintf("%s %s (%s in %s): %s", s.Function, s.Name, s.ID, s.SLS, s.Comment)
	}
	for _, p := range r.Health {
		if p.Error != "" {
			return strings.Join(append([]string{fmt.Sprintf("health %s: %s", p.Probe, p.Error)}, p.Journal...), "\n")
		}
	}
	for _, stage := range r.Stages {
		if stage.Error != "" {
			return stage.Name + ": " + stage.Error
		}
	}
	return r.Error
}

// failedHook is the hook or procedure in which a run failed first; "" where it failed elsewhere before. Later ones may have
// failed on the way back, and are those of another release.
func failedHook(r *report.Report) string {
	for _, stage := range r.Stages {
		if stage.Error == "" || stage.Name == "resolve" || stage.Name == "fetch" { // a run may go on without one of the two releases
			continue
		}
		for _, h := range r.Hooks[stage.Name] {
			if h.Error != "" {
				text := fmt.Sprintf("%s hook %s: %s", stage.Name, strings.TrimSuffix(h.Name+" of "+h.Release, " of "), h.Error)
				return strings.Join(append([]string{text}, lastWords(h.Output)...), "\n")
			}
		}
		return ""
	}
	return ""
}

// lastWords are the last lines of what a program printed, which the report holds without secrets and control characters.
func lastWords(output string) []string {
	const most, longest = 10, 500
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" {
			continue
		}
		if runes := []rune(line); len(runes) > longest {
			line = string(runes[:longest]) + " ..."
		}
		lines = append(lines, line)
	}
	return lines[max(len(lines)-most, 0):]
}

// advice is what a person can do, by what the host is like and what its channels named last, nil where that is not known.
func (w Why) advice(named *ledger.Pair) []string {
	next := []string{}
	say := func(when bool, text string) {
		if when {
			next = append(next, text)
		}
	}
	say(w.Running != nil, "wait: a run is under way")
	say(w.Unwritable != "", w.Unwritable)
	say(w.Hint != "", w.Hint)
	say(w.FailedIn != "" && !w.Settled, "corpus-agent report "+w.FailedIn)
	say(w.CutShort != nil, "corpus-agent deploy takes up the run that was cut short")
	say(w.Deployed == nil && !w.Bootstrapped, "copy keys/root.json of who runs the store to this host (`corpus store init` wrote it), then: corpus-agent deploy --store URL --trust-root ./root.json")
	say(w.Hold != nil, "corpus-agent unhold lets new releases in again")
	if last := w.keptAway(named); last != nil {
		say(true, fmt.Sprintf("publish a corrected version of %s, or retry it: corpus-agent unquarantine %s", last.Project, last.Version))
	}
	if p := w.Postponed; p != nil {
		say(true, fmt.Sprintf("see what is wrong with the host; %s is retried at %s, or at the next run after: corpus-agent unquarantine %s",
			p.Pair, p.Next.Local().Format("2006-01-02 15:04:05 MST"), p.Pair.Service.Version))
	}
	say(len(w.Drift) > 0 && w.Running == nil, "corpus-agent converge")
	return next
}

// keptAway is the release that was quarantined last of those that the channels name; nil for none. One that no channel names
// any more needs nothing done: it is not deployed anyway.
func (w Why) keptAway(named *ledger.Pair) *artifact.Release {
	for _, b := range slices.Backward(w.Quarantined) {
		if named == nil || b.Covers(*named) {
			release := ledger.Release(b)
			return &release
		}
	}
	return nil
}
