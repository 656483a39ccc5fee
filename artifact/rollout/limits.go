package rollout

import (
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Limits has what of a plan decides whether a rollout has arrived. A start has it, so that a change of the plan stops
// no rollout that has arrived.
type Limits struct {
	Halt    Halt  `json:"halt"`
	Healthy Share `json:"healthy"`
}

// Within returns the plan with the limits that count in a rollout: those of the plan as it is now, or those with which
// the rollout started if it has arrived by these. A start without limits, from an older program, follows the plan, as
// does one whose results could not be counted: the zero View.
func (p Plan) Within(s Start, seen View) Plan {
	if s.Limits != nil && seen.tally != nil && s.Limits.arrived(s, seen) {
		p.Halt, p.Healthy = s.Limits.Halt, s.Limits.Healthy
	}
	return p
}

// arrived reports whether enough hosts of each wave are healthy, except of waves that a person skipped, and no failures
// stop the rollout.
func (l Limits) arrived(s Start, seen View) bool {
	for w := s.Skipped; w < min(len(s.Hosts), seen.waves()); w++ {
		if seen.Healthy(w) < l.Healthy.Of(s.Hosts[w]) {
			return false
		}
	}
	failed, finished := seen.failedSince(s.Resumed), seen.finished(s.Resumed)
	return finished > failed && !l.Halt.Reached(failed, finished)
}

// check returns every mistake in limits.
func (l Limits) check() error {
	var errs []error
	if l.Halt.Hosts < 0 || l.Halt.Share < 0 || l.Halt.Share > All {
		errs = append(errs, diag.Plan.Hint(errors.New("the limit of failed hosts is out of range"), "write --halt-at 2,5%%"))
	}
	if l.Healthy < 0 || l.Healthy > All {
		errs = append(errs, diag.Plan.Hint(fmt.Errorf("%s of a wave's hosts cannot be healthy", l.Healthy),
			"write --healthy 80%%"))
	}
	return errors.Join(errs...)
}
