package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Why explains a host from its own records: why it runs what it runs, who signed that, what failed first since, and
// what to do next.
type Why struct {
	Status
	Reason   string            `json:"reason"`              // why this release
	Signed   []trust.Signature `json:"signed"`              // who signed it
	Failed   string            `json:"failed,omitempty"`    // what failed first in the last run that failed
	FailedIn string            `json:"failed_in,omitempty"` // that run
	Settled  bool              `json:"settled,omitempty"`   // runs since then succeeded, and nothing is kept away for it
	Hint     string            `json:"hint,omitempty"`      // of that run, unless it is settled
	Code     string            `json:"code,omitempty"`      // of the hint
	Next     []string          `json:"next"`                // what to do, most useful first
}

// Why combines the status, the reports and the trust metadata on disk.
func (h *Host) Why() (Why, error) {
	w, err := h.explain()
	return w, h.forLook(err)
}

func (h *Host) explain() (Why, error) {
	s, err := h.Status()
	w := Why{Status: s, Signed: []trust.Signature{}}
	if err != nil {
		return w, err
	}
	h.findSigners(&w)
	last, err := h.lastLook()
	h.damaged(&w.Status, err)
	named, err := h.LastNamed()
	h.damaged(&w.Status, err)
	w.Reason = reason(s, last, named)
	h.damaged(&w.Status, h.findFailure(&w))
	w.Next = w.advice(named)
	return w, nil
}

// findSigners looks up who signed the deployed releases. Releases that did not come from the store are not signed.
func (h *Host) findSigners(w *Why) {
	runs := w.runs()
	if runs == nil {
		return
	}
	known := len(w.Damaged) > 0
	for _, release := range runs.Releases() {
		if release.Local != "" {
			continue
		}
		signature, err := trust.SignatureOf(h.Layout.Trust(), release.Project)
		if !known { // otherwise the same damage is listed already
			h.damaged(&w.Status, err)
		}
		if signature != nil {
			w.Signed = append(w.Signed, *signature)
		}
	}
}

// reason explains in one sentence why the host runs its releases: because its channels name them, or else what the
// channels name and why that is not deployed. last is the newest run that looked at what is to run, and named what the
// channels named last.
func reason(s Status, last *report.Report, named *ledger.Pair) string {
	switch {
	case s.Deployed == nil && s.BaseAlone != nil:
		return fmt.Sprintf("no deploy of the service has succeeded yet; %s converges alone", s.BaseAlone)
	case s.Deployed == nil && !s.Bootstrapped:
		return "nothing is deployed: this host has no root of trust"
	case s.Deployed == nil:
		return "nothing is deployed: no deploy has succeeded yet"
	case s.StandsFor != nil:
		return fmt.Sprintf("it replaces %s, whose files were missing on the disk and were not fetched again", s.StandsFor)
	case s.Deployed.Service.Local != "":
		return fmt.Sprintf("%s came by %s", s.Deployed.Service, s.Deployed.Service.Local)
	case last != nil && last.Exit == exit.RolledBack && last.To != nil && last.Fault != nil &&
		last.Fault.Of == report.FaultOfHost:
		return fmt.Sprintf("the deploy of %s failed because of the host, and was rolled back to it", last.To)
	case last != nil && last.Leaves != nil && last.Leaves.Same(*s.Deployed) && last.To != nil:
		return fmt.Sprintf("the rollback to %s in run %s failed, and the host went back to it", last.To, last.ID)
	case last != nil && last.Exit == exit.RolledBack && last.To != nil:
		return fmt.Sprintf("%s, which the channels name, failed in run %s and was rolled back to it", last.To, last.ID)
	}
	gone := s.withdrawnNames()
	if named != nil && !named.Same(*s.Deployed) {
		return strings.Join(append([]string{notDeployed(s, last, *named)}, gone...), "; ")
	}
	switch {
	case len(gone) > 0:
		return strings.Join(gone, "; ")
	case last != nil && last.Exit == exit.Unreachable:
		return "it was current when the store was last reached"
	case s.Hold != nil:
		return strings.TrimSuffix("this host is held, so newer releases wait: "+s.Hold.Reason, ": ")
	case len(s.Channels) == 0:
		return "it was deployed last"
	}
	return "it is what " + channelNames(s, s.Deployed) + " named when the store was last asked"
}

// LastNamed returns the pair that the channels named when a run last resolved them; nil if no report has it. A rollback
// by hand does not resolve channels. If there are no reports of runs before it, the pair that the oldest rollback left
// is the one that the channels named.
func (h *Host) LastNamed() (named *ledger.Pair, err error) {
	err = h.lookBack(func(r *report.Report) bool {
		if r.Command == "rollback" || r.Leaves != nil {
			named = cmp.Or(r.Leaves, named)
			return false
		}
		named = cmp.Or(r.Withheld, r.To, named)
		return r.To != nil
	})
	return named, err
}

// notDeployed describes the pair that the channels name, and the reason why the host does not run it.
func notDeployed(s Status, last *report.Report, named ledger.Pair) string {
	text := fmt.Sprintf("%s named %s when the store was last asked, which this host does not run: ",
		channelNames(s, &named), named)
	var bad []string
	for _, b := range s.Quarantined {
		if b.Covers(named) {
			text := fmt.Sprintf("%s is quarantined (%s)", b.What(), b.Reason)
			if version := b.Under(&named); version != "" {
				text = version + " has the bytes of " + text
			}
			bad = append(bad, text)
		}
	}
	waits := s.waits(named)
	switch p := s.Postponed; {
	case waits != nil && s.Hold == nil:
		return text + waits.String()
	case len(bad) > 0:
		return text + strings.Join(bad, ", ")
	case s.Hold != nil:
		return text + strings.TrimSuffix("the host is held: "+s.Hold.Reason, ": ")
	case p != nil && p.Pair.Same(named):
		return text + "its deploy failed because of the host, and is retried"
	case last.Outcome == report.Interrupted:
		return text + "run " + last.ID + " was interrupted; the next run deploys it"
	}
	return text + fmt.Sprintf("run %s ended with %q", last.ID, last.Outcome)
}

// withdrawnNames returns a sentence for each channel that names a withdrawn release, which the host does not take.
func (s Status) withdrawnNames() (texts []string) {
	for _, w := range s.Withdrawn {
		if w.Channel != (artifact.Ref{}) {
			texts = append(texts, fmt.Sprintf("%s named %s when the store was last asked, which is withdrawn (%s), so this "+
				"host keeps %s", w.Channel, w.Release, w.When(), s.Keeps(w)))
		}
	}
	return texts
}

// Keeps returns what the host runs in the place of a withdrawn release that its channel names.
func (s Status) Keeps(w ledger.Withdrawn) string {
	if runs := s.runs(); runs != nil {
		for _, r := range runs.Releases() {
			if r.Project == w.Release.Project {
				return r.String()
			}
		}
	}
	return "what it has"
}

// waits returns the turn of the host in a rollout that brings a release of a pair, if the host waits for it; nil if
// not.
func (s Status) waits(named ledger.Pair) *ledger.Turn {
	for _, t := range s.Turns {
		if t.Comes() && named.Has(t.Release) {
			return &t
		}
	}
	return nil
}

// channelNames returns the channels of a host that name the releases of a pair, as text; all of them if the pair is of
// other projects.
func channelNames(s Status, pair *ledger.Pair) string {
	var names, all []string
	for _, c := range s.Channels {
		all = append(all, c.String())
		if slices.ContainsFunc(pair.Releases(), func(r artifact.Release) bool { return r.Project == c.Project }) {
			names = append(names, c.String())
		}
	}
	if len(names) == 0 {
		names = all
	}
	if len(names) == 0 {
		return "the channels"
	}
	return strings.Join(names, " and ")
}

// lastLook returns the report of the newest run that resolved what is to run, by the channels or by a person; nil if
// there is none.
func (h *Host) lastLook() (last *report.Report, err error) {
	err = h.lookBack(func(r *report.Report) bool {
		last = r
		return true
	})
	return last, err
}

// lookBack calls found with the reports of runs that resolved what is to run, the newest first, until found returns
// true.
func (h *Host) lookBack(found func(*report.Report) bool) error {
	ids, err := h.Reports().IDs()
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		r, err := h.Reports().Load(id)
		if err != nil {
			return err
		}
		if h.Concerns(r) && (r.To != nil || r.Exit == exit.Unreachable) && found(r) {
			return nil
		}
	}
	return nil
}

// advice returns what a person can do, by the state of the host and by what its channels named last, which is nil if
// unknown.
func (w Why) advice(named *ledger.Pair) []string {
	next := []string{}
	say := func(when bool, text string) {
		if when {
			next = append(next, text)
		}
	}
	say(w.Running != nil, "wait: a run is under way")
	say(w.Unwritable != "", w.Unwritable)
	for _, damage := range w.Damaged {
		say(true, damage.String())
	}
	for _, text := range w.Uncontrolled {
		say(true, text)
	}
	for hint := range strings.SplitSeq(w.Hint, "\n") {
		say(hint != "", hint)
	}
	say(w.FailedIn != "" && !w.Settled, "corpus-agent report "+w.FailedIn)
	say(w.CutShort != nil, "corpus-agent deploy resumes the run that was interrupted")
	say(w.Deployed == nil && !w.Bootstrapped,
		"copy the store's keys/root.json to this host (`corpus store init` wrote it), then: corpus-agent "+
			"deploy --store URL --trust-root ./root.json")
	say(w.RootLost() && !strings.Contains(w.Hint, "--trust-root"),
		"bring keys/root.json back from the machine with the keys, then: corpus-agent deploy --trust-root ./root.json; "+
			"until then runs converge what is on the disk and end with exit code 4")
	for _, t := range w.Turns {
		say(t.Comes() && w.Hold == nil, turnAdvice(t))
	}
	for _, gone := range w.Withdrawn {
		ref := gone.Channel
		say(ref != (artifact.Ref{}), fmt.Sprintf("publish a corrected version of %s, or point %s at another "+
			"one: corpus point %s %s VERSION", ref.Project, ref, ref.Project, ref.Channel))
	}
	say(w.Hold != nil, "corpus-agent unhold lets new releases in again")
	if last := w.keptAway(named); last != nil {
		say(true, fmt.Sprintf("publish a corrected version of %s, or retry it: corpus-agent unquarantine %s", last.Project,
			last.Version))
	}
	if p := w.Postponed; p != nil {
		say(true, fmt.Sprintf(
			"see what is wrong with the host; %s is retried %s, or at the next run after: corpus-agent unquarantine %s",
			p.Pair, p.When(time.Now()), p.Pair.Service.Version))
	}
	say(w.lost != nil && w.Running == nil && w.CutShort == nil,
		"corpus-agent deploy fetches again what is missing on the disk")
	say(len(w.Drift) > 0 && w.Running == nil && w.lost == nil, "corpus-agent converge")
	return next
}

// turnAdvice returns what a person can do about a release for whose turn the host waits. To take it before that turn is
// no advice while the rollout is stopped, or while it is not known whether it is.
func turnAdvice(t ledger.Turn) string {
	switch rollout.Reason(t.Reason) {
	case rollout.Halted, rollout.Stops, rollout.Paused, rollout.Aborted, ledger.ReasonNoEvidence:
		return "corpus rollout status " + t.Channel.Project + " " + t.Channel.Channel +
			" shows why, and what a person decides"
	}
	return "corpus-agent deploy --ahead takes " + t.Release.String() + " before the turn of this host"
}

// keptAway returns the release of those that the channels name which was quarantined last; nil if there is none, or if
// it is unknown what they name. A quarantined release that no channel names needs no action.
func (w Why) keptAway(named *ledger.Pair) *artifact.Release {
	for _, b := range slices.Backward(w.Quarantined) {
		if named != nil && b.Covers(*named) {
			release := ledger.Release(b)
			return &release
		}
	}
	return nil
}
