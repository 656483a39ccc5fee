package releases

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Repair fetches those releases of a pair again that differ from what was unpacked, and reports whether it has fetched
// one. It fetches nothing in a run without a store.
func (r *Run) Repair(ctx context.Context, pair ledger.Pair) bool {
	if r.Test || r.Connection.Client == nil || ctx.Err() != nil {
		return false
	}
	again := false
	for _, release := range pair.Releases() {
		what := r.difference(ctx, release)
		if what == "" {
			continue
		}
		r.Record.Note("%s differs on the disk from what was unpacked: %s", release, what)
		if err := r.replace(ctx, release); err != nil {
			r.Record.Note("%s was not fetched again: %v; the next run tries it again", release, err)
			continue
		}
		again = true
	}
	return again
}

// OnDisk returns those releases of a pair that are on the disk.
func (r *Run) OnDisk(pair ledger.Pair) (held []artifact.Release) {
	for _, release := range pair.Releases() {
		if r.Host.Held().Has(release) {
			held = append(held, release)
		}
	}
	return held
}

// RepairBefore fetches releases of a pair again that differ from what was unpacked, before a deploy changes the host,
// so that a deploy does not fail because another program removed files. held are the releases of the pair that were on
// the disk before the fetch.
func (r *Run) RepairBefore(ctx context.Context, pair ledger.Pair, held []artifact.Release) error {
	if r.Test {
		return nil
	}
	if err := r.RestoreModes(pair); err != nil {
		return err
	}
	for _, release := range held {
		damage := r.damageBefore(ctx, release)
		if damage == nil {
			continue
		}
		if err := r.replace(ctx, release); err != nil {
			return exit.WithCode(exit.Refused, diag.Changed.Hint(fmt.Errorf("%w; it was not fetched again: %w", damage, err),
				"the next run that reaches the store fetches it again: corpus-agent deploy"))
		}
		r.Record.Note("%v; it was fetched again", damage)
	}
	return nil
}

// damageBefore returns an error if a release that was on the disk before a deploy is damaged. In a deployed release it
// compares only the code, since a run repairs the other files when states fail because of them. It returns nil for a
// release that cannot be read: the deploy fails with that error, and decides whether the host or the release is at
// fault.
func (r *Run) damageBefore(ctx context.Context, release artifact.Release) error {
	if runs := r.Ledger.Runs(); runs == nil || !runs.Has(release) {
		if what := r.difference(ctx, release); what != "" {
			return fmt.Errorf("%s differs on the disk from what was unpacked: %s", release, what)
		}
		return nil
	}
	if release.Local == trust.ByEditable {
		return nil
	}
	damage := r.intact(ctx, release)
	if exit.Code(damage) != exit.Refused {
		return nil
	}
	return damage
}

// difference describes the first file of a release that is missing or has another content or mode than in the release's
// list; "" if there is none, or no list. It ignores files that the project may write, and modes that states of this
// host set, which the converge after a fetch would set again.
func (r *Run) difference(ctx context.Context, release artifact.Release) string {
	if release.Local != "" {
		return ""
	}
	audit, err := r.Host.AuditRelease(ctx, release)
	if err != nil {
		return ""
	}
	for _, c := range audit.Changes {
		if c.Damages() || c.OnlyMode() && c.By == "" {
			return c.Name + " " + c.What
		}
	}
	return ""
}

// Verify compares the releases of a pair, to which a rollback leads, with what was signed, and corrects their modes. It
// notes a release that cannot be verified, since its list was lost or no key has signed it.
func (r *Run) Verify(ctx context.Context, target ledger.Pair) error {
	errs := []error{r.RestoreModes(target)}
	for _, release := range target.Releases() {
		if release.Local != "" {
			continue
		}
		audit, err := r.Host.AuditRelease(ctx, release)
		if err != nil {
			r.Record.Note("%s could not be verified before going back to it: %v", release, err)
		}
		for _, c := range audit.Changes {
			if c.Damages() {
				errs = append(errs, fmt.Errorf("%s is not as it was unpacked: %s %s", release, c.Name, c.What))
				break
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return exit.WithCode(exit.Refused,
			diag.Changed.Hint(err, "go back to another version (rollback --to VERSION), or promote this one to its channel, "+
				"after its directory below releases was removed: deploy fetches it again"))
	}
	return nil
}

// RepairData creates data directories of the deployed pair that were lost. Their content is lost, which it notes.
func (r *Run) RepairData() error {
	runs := r.Ledger.Runs()
	if runs == nil {
		return nil
	}
	lost, unseen := r.Host.DataLost(*runs)
	for _, text := range unseen {
		r.Record.Note("%s", text)
	}
	if len(lost) == 0 {
		return nil
	}
	for _, text := range lost {
		r.Record.Note("%s; a new, empty one is created: restore its content from a backup", text)
	}
	for _, release := range runs.Releases() {
		if err := project.LayOut(r.Host.LayoutOf(release.Project)); err != nil {
			return err
		}
	}
	return nil
}
