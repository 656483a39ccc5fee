package undo

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/units"
	"github.com/corpus-agent/corpus-agent/state/image"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// restore is the state of a running restore.
type restore struct {
	plan   *Plan
	host   *host.Host
	marker *journal.Marker
	did    Summary
	failed map[*journal.Record]bool // records that the next restore retries
	full   []*Action                // directories to remove that were not empty
	gone   map[string]bool          // directories that cannot be restored, and neither can their content
	units  bool                     // unit files changed, so the init system must reload them
}

// Restore executes a plan. It returns an error if the journal cannot be read or written, the host cannot be synced, or
// ctx is done. Subjects that could not be restored are in the summary.
func Restore(ctx context.Context, h *host.Host, j journal.Journal, run string, p *Plan) (Summary, error) {
	r := &restore{plan: p, host: h, marker: j.Mark(run, p.chapters), did: p.summary(), failed: map[*journal.Record]bool{},
		gone: map[string]bool{}}
	r.retryLater(p.refused...)
	err := r.all(ctx)
	r.did.Unfinished = len(r.failed) > 0
	redact.Each(&r.did, p.show)
	return r.did, errors.Join(err, r.marker.Close())
}

// all executes the plan. It settles the records at the end, after the host's filesystems are synced. If a power failure
// comes before that, the next restore compares again and skips what is already restored.
func (r *restore) all(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.actions(ctx); err != nil {
		return err
	}
	r.removeDirs(ctx)
	r.restart(ctx)
	if err := r.host.Sync(); err != nil {
		return err
	}
	return r.settle()
}

// actions carries out the plan in its order, and packages that follow each other together.
func (r *restore) actions(ctx context.Context) error {
	for i := 0; i < len(r.plan.Actions); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		a := r.plan.Actions[i]
		if a.Subject.Kind == host.KindPackage {
			group := r.packagesFrom(i)
			r.packages(ctx, group)
			i += len(group) - 1
			continue
		}
		if err := r.act(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// begin marks the records that are about to be restored: a half restored subject may equal neither the image before nor
// the image after the run.
func (r *restore) begin() error {
	var all []*journal.Record
	for _, a := range r.plan.Actions {
		all = append(all, a.records...)
	}
	for _, unit := range r.plan.Restart {
		all = append(all, r.plan.restarts[unit]...)
	}
	if len(all) == 0 {
		return nil
	}
	return r.marker.Begun(all...)
}

func (r *restore) settle() error {
	for _, record := range r.plan.records {
		if r.failed[record] {
			continue
		}
		if err := r.marker.Undone(r.plan.left[record], record); err != nil {
			return err
		}
	}
	return nil
}

// packagesFrom returns the consecutive actions on packages that start at index i.
func (r *restore) packagesFrom(i int) []*Action {
	end := i
	for end < len(r.plan.Actions) && r.plan.Actions[end].Subject.Kind == host.KindPackage {
		end++
	}
	return r.plan.Actions[i:end]
}

func (r *restore) packages(ctx context.Context, group []*Action) {
	want := map[string]image.Image{}
	for _, a := range group {
		want[a.Subject.Name] = a.whole
	}
	lost := image.Putter{Host: r.host}.Packages(ctx, want)
	for _, a := range group {
		r.result(a, lost[a.Subject.Name])
	}
}

// result adds the result of an action to the summary.
func (r *restore) result(a *Action, err error) {
	var stays image.Stays
	why, refused := refusal(r.host, err)
	switch {
	case refused: // another user's link must not make the restore fail
		r.did.Left = append(r.did.Left, Left{Subject: a.Subject.String(), Step: a.Step, Why: why})
		r.retryLater(a.records...)
	case errors.As(err, &stays):
		r.left(a, err.Error())
	case err != nil:
		r.fail(a, err)
	default:
		r.did.Restored = append(r.did.Restored, a.Subject.String())
	}
}

// act restores one subject, part by part. It returns an error only if the journal cannot be read.
func (r *restore) act(ctx context.Context, a *Action) error {
	if a.done {
		return nil
	}
	a.done = true
	for _, part := range a.Parts {
		if err := r.parent(ctx, part.Want); err != nil {
			return err
		}
		r.stopUnit(ctx, part)
		err := image.Putter{Host: r.host, Content: part.chapter}.Put(ctx, a.Subject, part.Want)
		var damaged *journal.Damaged
		switch {
		case errors.As(err, &damaged):
			return err
		case errors.Is(err, image.NotEmpty):
			r.full = append(r.full, a)
			return nil
		case err != nil && r.noParent(part.Want, err):
			r.gone[part.Want.Name] = true
			r.left(a, "there is no directory for it any more")
			return nil
		case err != nil:
			r.result(a, err)
			return nil
		}
		r.units = r.units || strings.Contains(part.Want.Name, "/systemd/system/") ||
			strings.HasPrefix(part.Want.Name, "/etc/init.d/")
	}
	r.result(a, nil)
	return nil
}

// stopUnit stops a unit whose file the restore is about to remove. The unit did not exist before the run, so it did not
// run either.
func (r *restore) stopUnit(ctx context.Context, part *Part) {
	dir, name := path.Split(part.Want.Name)
	if part.Want.Type != image.Absent || part.Now.Type != image.File || !strings.HasSuffix(dir, "/systemd/system/") {
		return
	}
	u, err := r.host.Units.Unit(ctx, name, "")
	if err != nil || !u.Running() {
		return
	}
	if err := r.host.Units.Act(ctx, host.Stop, name, true); err != nil {
		r.did.Left = append(r.did.Left, Left{Subject: "unit " + name, Why: err.Error()})
	}
}

// parent restores the parent directory of a path first, if a later action would do so.
func (r *restore) parent(ctx context.Context, want image.Part) error {
	dir := path.Dir(want.Name)
	if want.Type == image.Absent || !path.IsAbs(want.Name) || dir == "/" {
		return nil
	}
	if _, err := r.host.Files.Lstat(dir); err == nil {
		return nil
	}
	for _, a := range r.plan.Actions {
		if !a.done && a.Subject == (host.Subject{Kind: host.KindFile, Name: dir}) {
			return r.act(ctx, a)
		}
	}
	return nil
}

// noParent reports whether a path could not be restored because its parent directory was removed or replaced after the
// run.
func (r *restore) noParent(want image.Part, err error) bool {
	dir := path.Dir(want.Name)
	planned := slices.ContainsFunc(r.plan.Actions, func(a *Action) bool {
		return a.Subject == host.Subject{Kind: host.KindFile, Name: dir}
	})
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, host.ErrNotDir)
	return path.IsAbs(want.Name) && missing && (!planned || r.gone[dir])
}

// removeDirs retries to remove directories, after all their content has been removed.
func (r *restore) removeDirs(ctx context.Context) {
	full := r.full
	structsort.Func(full, func(a, b *Action) int { return strings.Compare(b.Subject.Name, a.Subject.Name) })
	for _, a := range full {
		r.result(a, image.Putter{Host: r.host}.Put(ctx, a.Subject, a.Parts[0].Want))
	}
}

// restart reloads the init system if unit files changed, and restarts the units of the plan.
func (r *restore) restart(ctx context.Context) {
	if r.units {
		if err := units.Reload(ctx, r.host); err != nil {
			r.did.Failed = append(r.did.Failed, Left{Subject: "units", Why: err.Error()})
		}
	}
	for _, unit := range r.plan.Restart {
		if r.unitRemoved(ctx, unit) {
			continue
		}
		if err := r.host.Units.Act(ctx, host.Restart, unit, true); err != nil {
			r.fail(&Action{Subject: host.Subject{Kind: host.KindUnit, Name: unit}, records: r.plan.restarts[unit]}, err)
			continue
		}
		r.did.Restarted = append(r.did.Restarted, unit)
	}
}

// unitRemoved reports whether the restore removed a unit: its file, or the package that contains it, which stopped it.
// The undone runs had created the unit, so there is nothing to restart.
func (r *restore) unitRemoved(ctx context.Context, unit string) bool {
	u, err := r.host.Units.Unit(ctx, unit, "")
	if err != nil {
		return false // the restart returns the error
	}
	return !u.Found || !u.Running() && slices.ContainsFunc(r.plan.Actions, func(a *Action) bool {
		return a.Subject.Kind == host.KindPackage
	})
}

func (r *restore) fail(a *Action, err error) {
	r.did.Failed = append(r.did.Failed, Left{Subject: a.Subject.String(), Step: a.Step, Why: err.Error()})
	r.retryLater(a.records...)
}

// retryLater keeps records unsettled, so that the next restore retries them.
func (r *restore) retryLater(records ...*journal.Record) {
	for _, record := range records {
		r.failed[record] = true
	}
}

func (r *restore) left(a *Action, why string) {
	r.did.Left = append(r.did.Left, Left{Subject: a.Subject.String(), Step: a.Step, Why: why})
	for _, record := range a.records {
		r.plan.left[record] = why
	}
}
