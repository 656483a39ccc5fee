package outgoing

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Record returns the record of a host after a run. r is the copy of the report that may leave the host.
func Record(r *report.Report, held bool) hostrecord.Record {
	out := hostrecord.Record{
		Project: r.Service, Host: r.Host, Run: r.ID, Sequence: r.Sequence,
		Outcome: strings.ReplaceAll(string(r.Outcome), " ", "-"), Exit: r.Exit, Agent: r.Agent, Form: r.Form,
		Flags: hostrecord.Flags{
			Held: held, Quarantined: quarantined(r), Drifted: drifted(r), Unserved: len(r.Unserved) > 0, Excused: r.Excused,
			OtherRoot: r.OtherRoot, Expiring: len(r.Expiring) > 0, OfBase: ofBase(r),
			AlsoBase: alsoBase(r),
		},
	}
	left, wanted := r.Left, r.Withheld
	if left == nil {
		left = r.BaseAlone
	}
	if wanted == nil || r.Exit != 0 {
		wanted = r.To // a failed run failed on what it tried, also while the host waits for another release
	}
	out.Service, out.Base = placed(r, left, r.Service), placed(r, left, artifact.Base)
	out.Wanted = other(placed(r, wanted, r.Service), out.Service)
	out.WantedBase = other(placed(r, wanted, artifact.Base), out.Base)
	if out.Base != nil && out.Base.Digest == "" && out.WantedBase == nil {
		out.Base = nil // the store has none
	}
	return out
}

// HasChanges reports whether a run has more to report than that nothing changed: it failed, acted, changed something,
// or checked the units and probes of the deployed pair. A record that differs from the one before is news as well,
// which hostrecord.Writer finds.
func HasChanges(r *report.Report, acted bool) bool {
	return acted || notify.EventOf(r) != notify.NoChange || r.Proven != nil && r.Proven.Run == r.ID ||
		len(r.Units) > 0 || len(r.Health) > 0 || len(r.Hooks) > 0
}

// placed returns a project's release in a pair, with the channel that the host follows. It returns nil if both are
// unknown.
func placed(r *report.Report, pair *ledger.Pair, project string) *hostrecord.Place {
	var p hostrecord.Place
	for _, ref := range r.Channels {
		if ref.Project == project {
			p.Channel = ref.Channel
		}
	}
	if pair != nil {
		for _, release := range pair.Releases() {
			if release.Project == project {
				p.Version, p.Digest = release.Version, release.Digest.Short()
			}
		}
	}
	if p == (hostrecord.Place{}) {
		return nil
	}
	return &p
}

// other returns the wanted place if it is not the deployed one, and nil otherwise.
func other(wanted, deployed *hostrecord.Place) *hostrecord.Place {
	if wanted == nil || wanted.Digest == "" || deployed != nil && wanted.Digest == deployed.Digest {
		return nil
	}
	return wanted
}

// ofBase reports whether what failed in the run, or what the host keeps in quarantine, is base and not the service.
func ofBase(r *report.Report) bool {
	if r.Fault != nil && r.Fault.Release != nil {
		return r.Fault.Release.Project == artifact.Base && r.Service != artifact.Base
	}
	if r.Exit != 0 {
		hosts := r.Fault != nil && r.Fault.Of != report.FaultOfRelease
		return r.FailedInBase && !hosts && r.Service != artifact.Base
	}
	base, service := keptOut(r)
	return base && !service
}

// alsoBase reports whether the host keeps both base and the service in quarantine.
func alsoBase(r *report.Report) bool {
	base, service := keptOut(r)
	return r.Exit == 0 && base && service
}

// keptOut reports whether base and the service that the channels name are in quarantine.
func keptOut(r *report.Report) (base, service bool) {
	if r.Withheld == nil || r.Withheld.Base == nil || r.Service == artifact.Base {
		return false, false
	}
	is := func(release artifact.Release) bool {
		return slices.ContainsFunc(r.Quarantined, func(q report.Quarantined) bool { return q.Release.Is(release) })
	}
	return is(*r.Withheld.Base), !r.Withheld.BaseAlone() && is(r.Withheld.Service)
}

// quarantined reports whether the host does not deploy what its channels name because it is in quarantine.
func quarantined(r *report.Report) bool {
	if r.Withheld == nil {
		return false
	}
	return slices.ContainsFunc(r.Withheld.Releases(), func(release artifact.Release) bool {
		return slices.ContainsFunc(r.Quarantined, func(q report.Quarantined) bool { return q.Release.Is(release) })
	})
}

// drifted reports whether a run that deployed nothing new had to change the host.
func drifted(r *report.Report) bool {
	return r.Outcome == report.Converged && r.From != nil && r.Left != nil && r.From.Same(*r.Left) &&
		r.States.Effective() > 0
}
