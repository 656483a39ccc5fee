package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// withoutQuarantined replaces each release of a pair that is in quarantine by the one that runs. A host that has run
// without base goes on so while the first base is in quarantine: its service is still brought up to date.
func (r *run) withoutQuarantined(pair *ledger.Pair) {
	good := r.ledger.Runs()
	if good == nil {
		return
	}
	for _, release := range pair.Releases() {
		for _, b := range r.ledger.Bad {
			if b.Is(release) {
				r.record.Note("%s is quarantined since run %s: %s", release, b.Run, b.Reason)
				*pair = inPlace(*pair, release, *good)
				break
			}
		}
	}
}

// inPlace is a pair with what runs in the place of one of its releases.
func inPlace(pair ledger.Pair, release artifact.Release, good ledger.Pair) ledger.Pair {
	if release.Project == artifact.Base && good.Base == nil {
		pair.Base = nil
		return pair
	}
	for _, runs := range good.Releases() {
		if runs.Project == release.Project {
			return pair.With(runs)
		}
	}
	return pair
}

// condemn records in the ledger what follows from a fault.
func (r *run) condemn(pair ledger.Pair, f fault) {
	told := &report.Fault{Of: f.of, Release: f.release}
	switch {
	case f.of == report.FaultOfHost:
		p := r.ledger.Postpone(pair, firstLine(f.cause), r.id, r.Time().UTC())
		told.Retry = &p.Next
		r.record.Note("the host failed, and not the release: %s", nextTry(p))
	case f.release != nil:
		r.quarantine(pair, *f.release, firstLine(f.cause))
	}
	r.record.Complete(func(rep *report.Report) { rep.Fault = told })
}

// acquit takes a release out of quarantine whose failure the way back has shown to be the host's.
func (r *run) acquit(pair ledger.Pair, cause error) error {
	r.ledger.Bad = structsort.Without(r.ledger.Bad, func(b ledger.Bad) bool { return b.Run == r.id && b.Covers(pair) })
	r.condemn(pair, fault{of: report.FaultOfHost, cause: cause})
	return r.save()
}

// nextTry says when a deploy that the host failed is retried.
func nextTry(p ledger.Postponed) string {
	if p.Next.Equal(p.At) {
		return "the next run tries it again"
	}
	return "it is tried again from " + p.Next.Local().Format("2006-01-02 15:04 MST") + " on; at once: " + p.AtOnce()
}

// quarantine keeps a release from being deployed again.
func (r *run) quarantine(pair ledger.Pair, release artifact.Release, reason string) {
	r.ledger.Quarantine(ledger.Bad{Pair: pair, Release: &release, Reason: reason, Run: r.id, At: r.Time().UTC()})
}

// leave quarantines what somebody went back from: each release that the host has no more.
func (r *run) leave(left ledger.Pair) {
	for _, release := range left.Releases() {
		if r.ledger.Good == nil || !r.ledger.Good.Has(release) {
			r.quarantine(left, release, ledger.ByHand)
		}
	}
	r.ledger.Previous = nil
	r.ledger.Previous = r.lastKept()
}

// Unquarantine lets releases be tried again that have this version or directory; "" means all.
func (a *Agent) Unquarantine(version string) (released []ledger.Bad, err error) {
	err = a.Edit("unquarantine", func(book *ledger.Ledger) error {
		known := book.Bad
		if released = book.Unquarantine(version); len(released) == 0 {
			return exit.WithCode(exit.Usage, notQuarantined(version, known))
		}
		return nil
	})
	return released, err
}

// notQuarantined is the error for a version that is not in quarantine.
func notQuarantined(version string, known []ledger.Bad) error {
	if len(known) == 0 {
		return diag.WithHint(errors.New("nothing is quarantined"), "`corpus-agent status` would list it")
	}
	var all []string
	for _, b := range known {
		all = append(all, b.What())
	}
	return diag.WithHint(fmt.Errorf("%q is not quarantined", version), "quarantined: %s", strings.Join(all, ", "))
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
