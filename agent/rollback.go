package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rollback puts the previous pair back and quarantines the one that ran, so that the next tick of
// the timer does not deploy it again.
func (a *Agent) Rollback(ctx context.Context) (*report.Report, error) { return a.RollbackTo(ctx, "") }

// RollbackTo goes back to an earlier release of the service that is still on this host, by its
// version or directory; "" is the one before.
func (a *Agent) RollbackTo(ctx context.Context, version string) (*report.Report, error) {
	return a.pass(ctx, "rollback", false, func(r *run) error {
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		if err := r.settleCut(ctx); err != nil {
			return err
		}
		return r.rollback(ctx, version)
	})
}

func (r *run) rollback(ctx context.Context, version string) error {
	target, err := r.earlier(version)
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if err := errors.Join(r.withdrawn(target), r.asUnpacked(ctx, target)); err != nil {
		return err
	}
	// Whoever names a pair that is quarantined has decided to try it again.
	r.ledger.Forgive(target)
	return r.goBack(ctx, target, *r.ledger.Good)
}

// asUnpacked verifies the releases of a pair to go back to, which may have lain on the disk for long. One
// whose list was not kept, or that no key signed, cannot be verified, and the run says so.
func (r *run) asUnpacked(ctx context.Context, target ledger.Pair) error {
	var errs []error
	for _, release := range target.Releases() {
		if release.Local != "" {
			continue
		}
		audit, err := r.audit(ctx, release)
		var refused *trust.Refused
		switch {
		case errors.As(err, &refused):
			errs = append(errs, err)
		case err != nil:
			r.record.Note("%s could not be verified before going back to it: %v", release, err)
		}
		for _, c := range audit.Changes {
			if c.Damages() {
				errs = append(errs, fmt.Errorf("%s is not as it was unpacked: %s %s", release, c.Name, c.What))
				break
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return exit.WithCode(exit.Refused, diag.WithHint(err, "go back to another version (rollback --to VERSION), or promote this one to its channel, after its directory below releases was removed: deploy fetches it again"))
	}
	return nil
}

// goBack applies an earlier pair. Where somebody goes back from what a dev host stayed on, nothing is
// left that could be quarantined.
func (r *run) goBack(ctx context.Context, target, left ledger.Pair) error {
	r.report.To = &target
	if !left.Same(target) {
		r.leaves = &left
	}
	return r.apply(ctx, target)
}

// withdrawn is the refusal of a pair to go back to; nil where nothing of it was withdrawn.
func (r *run) withdrawn(target ledger.Pair) error {
	w, yes := r.ledger.IsWithdrawn(target)
	if !yes {
		return nil
	}
	return exit.WithCode(exit.Refused, diag.WithHint(fmt.Errorf("%s, to go back to, was withdrawn on %s: %s", w.Release, w.At.Format("2006-01-02"), w.Reason),
		"publish a mended version; `corpus yank --undo` takes the withdrawal back"))
}

// earlier finds the pair to go back to.
func (r *run) earlier(version string) (ledger.Pair, error) {
	good, previous := r.ledger.Good, r.ledger.Previous
	if version == "" {
		if r.ledger.Failing != nil && good != nil && r.hasAll(*good) {
			return *good, nil
		}
		if good == nil || previous == nil || !r.hasAll(*previous) {
			return ledger.Pair{}, diag.WithHint(errors.New("there is no earlier deploy to go back to"), "`corpus-agent history` shows what was deployed")
		}
		return *previous, nil
	}
	if good != nil && good.Is(version) {
		return ledger.Pair{}, diag.WithHint(fmt.Errorf("%s is what runs", version), "`corpus-agent converge` puts it right where it drifted")
	}
	var known []string
	for _, pair := range slices.Backward(r.ledger.History) {
		if good == nil || pair.Same(*good) || !r.hasAll(pair) {
			continue
		}
		if pair.Is(version) {
			return pair, nil
		}
		known = append(known, pair.Service.Version)
	}
	hint := "nothing else is kept on this host; promote the version to its channel"
	if len(known) > 0 {
		hint = "kept on this host: " + strings.Join(known, ", ")
	}
	return ledger.Pair{}, diag.WithHint(fmt.Errorf("no release %q that was good is kept on this host", version), "%s", hint)
}
