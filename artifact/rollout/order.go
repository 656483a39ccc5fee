package rollout

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Order has what of a plan decides, besides the cuts, which wave a host is in. A start has it, so that a change of the
// plan moves no host of a rollout into another wave.
type Order struct {
	First   []string `json:"first,omitempty"`
	Last    []string `json:"last,omitempty"`
	Regions []string `json:"regions,omitempty"`
}

func (p Plan) order() *Order { return &Order{First: p.First, Last: p.Last, Regions: p.Regions} }

// For returns the plan by which the hosts of a rollout are in waves: with the order that it had when the rollout
// started. A start without an order, from an older program, follows the plan as it is now.
func (p Plan) For(s Start) Plan {
	if s.Order != nil {
		p.First, p.Last, p.Regions = s.Order.First, s.Order.Last, s.Order.Regions
	}
	return p
}

// check returns every mistake in an order.
func (o Order) check() error {
	errs := []error{checkNumber(len(o.First)), checkNumber(len(o.Last)), checkNumber(len(o.Regions))}
	for _, pattern := range slices.Concat(o.First, o.Last) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			errs = append(errs, diag.Plan.Hint(fmt.Errorf("%q is not a pattern of host names", pattern),
				"write one as for files, such as myapp-production-*-1"))
		}
	}
	return errors.Join(errs...)
}

// checkNumber checks the length of a list of a plan.
func checkNumber(n int) error {
	if n > maxPatterns {
		return fmt.Errorf("a plan has at most %d patterns of hosts, regions and windows", maxPatterns)
	}
	return nil
}
