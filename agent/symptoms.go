package agent

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state"
)

// symptoms are the failures of states, units and probes that an error joins, as texts that are equal where two releases
// failed alike. Texts that name a process or the directory of a release never are.
func symptoms(err error) []string {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
		return nil
	case *state.Failure:
		return []string{"state " + e.First.Step.Function() + " " + e.First.ID() + ": " + e.First.Comment}
	case *service.Failed:
		var all []string
		for _, r := range e.Results {
			if r.Error != "" {
				all = append(all, "unit "+r.Unit+": "+r.Error)
			}
		}
		return all
	case *health.Unhealthy:
		var all []string
		for _, r := range e.Results {
			if r.Error != "" {
				all = append(all, "probe "+r.Probe+": "+r.Error)
			}
		}
		return all
	case interface{ Unwrap() error }:
		return symptoms(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []string
		for _, one := range e.Unwrap() {
			all = append(all, symptoms(one)...)
		}
		return all
	}
	return nil
}

// sameSymptoms reports whether every symptom of a failure was there on the way back as well: one that was not is the
// new release's own.
func sameSymptoms(cause, back []string) bool {
	return len(cause) > 0 && !slices.ContainsFunc(cause, func(s string) bool { return !slices.Contains(back, s) })
}
