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
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/units"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// restore is one restore on its way.
type restore struct {
	plan   *Plan
	host   *host.Host
	marker *journal.Marker
	did    Summary
	failed map[*journal.Record]bool // to be tried again
	full   []*Action                // directories that are to go and were not empty
	gone   map[string]bool          // directories that stay away, so what was in them does too
	units  bool                     // unit files changed, so the init system has to read them
}

// Restore does what a plan says. Its error is one of the journal's own; what could not be put back is
// in the summary.
func Restore(ctx context.Context, h *host.Host, j journal.Journal, run string, p *Plan) (Summary, error) {
	r := &restore{plan: p, host: h, marker: j.Mark(run, p.chapters), did: p.summary(), failed: map[*journal.Record]bool{}, gone: map[string]bool{}}
	r.again(p.refused...)
	err := r.all(ctx)
	return r.did, errors.Join(err, r.marker.Close())
}

// all goes through the plan. The records are settled at the end, when no power cut can take back what
// was done: should one come before that, the next restore compares again, and finds done what is done.
func (r *restore) all(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
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
	r.clear(ctx)
	r.restart(ctx)
	if err := r.host.Sync(); err != nil {
		return err
	}
	return r.settle()
}

// begin notes what is about to be put back. Half done it may look neither as it was nor as the run
// left it.
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

// packagesFrom are the packages that follow one another from an action on.
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
		r.tell(a, lost[a.Subject.Name])
	}
}

// tell notes how it went with a subject.
func (r *restore) tell(a *Action, err error) {
	var stays image.Stays
	why, refused := refusal(r.host, err)
	switch {
	case refused: // no user can stop the way back by a link
		r.did.Left = append(r.did.Left, Left{Subject: a.Subject.String(), Step: a.Step, Why: why})
		r.again(a.records...)
	case errors.As(err, &stays):
		r.left(a, err.Error())
	case err != nil:
		r.fail(a, err)
	default:
		r.did.Restored = append(r.did.Restored, a.Subject.String())
	}
}

// act puts one subject back, part by part. Only a journal that cannot be read is an error.
func (r *restore) act(ctx context.Context, a *Action) error {
	if a.done {
		return nil
	}
	a.done = true
	for _, part := range a.Parts {
		if err := r.parent(ctx, part.Want); err != nil {
			return err
		}
		r.unitGoes(ctx, part)
		err := image.Putter{Host: r.host, Content: part.chapter}.Put(ctx, a.Subject, part.Want)
		var damaged *journal.Damaged
		switch {
		case errors.As(err, &damaged):
			return err
		case errors.Is(err, image.NotEmpty):
			r.full = append(r.full, a)
			return nil
		case err != nil && r.homeless(part.Want, err):
			r.gone[part.Want.Name] = true
			r.left(a, "there is no directory for it any more")
			return nil
		case err != nil:
			r.tell(a, err)
			return nil
		}
		r.units = r.units || strings.Contains(part.Want.Name, "/systemd/system/") || strings.HasPrefix(part.Want.Name, "/etc/init.d/")
	}
	r.tell(a, nil)
	return nil
}

// unitGoes stops a unit whose file is about to go. It was not there before, so it did not run, whoever
// has started it since.
func (r *restore) unitGoes(ctx context.Context, part *Part) {
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

// parent puts the directory of a path back first, if that is still to come.
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

// homeless reports whether something could not be put back because somebody has removed the directory
// that it was in, or put something else in its place.
func (r *restore) homeless(want image.Part, err error) bool {
	dir := path.Dir(want.Name)
	planned := slices.ContainsFunc(r.plan.Actions, func(a *Action) bool { return a.Subject == host.Subject{Kind: host.KindFile, Name: dir} })
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, host.ErrNotDir)
	return path.IsAbs(want.Name) && missing && (!planned || r.gone[dir])
}

// clear tries again to remove directories, when all that was in them should be gone.
func (r *restore) clear(ctx context.Context) {
	full := r.full
	slices.SortFunc(full, func(a, b *Action) int { return strings.Compare(b.Subject.Name, a.Subject.Name) })
	for _, a := range full {
		r.tell(a, image.Putter{Host: r.host}.Put(ctx, a.Subject, a.Parts[0].Want))
	}
}

// restart restarts the units whose files were put back, when all else is done.
func (r *restore) restart(ctx context.Context) {
	if r.units {
		if err := units.Reload(ctx, r.host); err != nil {
			r.did.Failed = append(r.did.Failed, Left{Subject: "units", Why: err.Error()})
		}
	}
	for _, unit := range r.plan.Restart {
		if r.unitIsGone(ctx, unit) {
			continue
		}
		if err := r.host.Units.Act(ctx, host.Restart, unit, true); err != nil {
			r.fail(&Action{Subject: host.Subject{Kind: host.KindUnit, Name: unit}, records: r.plan.restarts[unit]}, err)
			continue
		}
		r.did.Restarted = append(r.did.Restarted, unit)
	}
}

// unitIsGone reports whether a unit went with what was taken back: its file, or the package that brought it and stopped
// it. It was there only since the runs that are taken back, so there is nothing to restart.
func (r *restore) unitIsGone(ctx context.Context, unit string) bool {
	u, err := r.host.Units.Unit(ctx, unit, "")
	if err != nil {
		return false // the restart says why
	}
	return !u.Found || !u.Running() && slices.ContainsFunc(r.plan.Actions, func(a *Action) bool { return a.Subject.Kind == host.KindPackage })
}

func (r *restore) fail(a *Action, err error) {
	r.did.Failed = append(r.did.Failed, Left{Subject: a.Subject.String(), Step: a.Step, Why: err.Error()})
	r.again(a.records...)
}

// again keeps records for another try.
func (r *restore) again(records ...*journal.Record) {
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
