package undo

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// restore is one restore on its way.
type restore struct {
	plan   *Plan
	host   *host.Host
	marker *journal.Marker
	did    Summary
	units  bool // unit files changed, so the init system has to read them
}

// Restore does what a plan says. Its error is one of the journal's own; what could not be put back is
// in the summary.
func Restore(ctx context.Context, h *host.Host, j journal.Journal, run string, p *Plan) (Summary, error) {
	r := &restore{plan: p, host: h, marker: j.Mark(run, p.chapters), did: Summary{Left: p.Left}}
	err := r.all(ctx)
	return r.did, errors.Join(err, r.marker.Close())
}

func (r *restore) all(ctx context.Context) error {
	for _, unit := range r.plan.Restart {
		if err := r.marker.Begun(r.plan.restarts[unit]...); err != nil {
			return err
		}
	}
	for i := 0; i < len(r.plan.Actions); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		a := r.plan.Actions[i]
		if a.Subject.Kind != host.KindPackage {
			if err := r.act(ctx, a); err != nil {
				return err
			}
			continue
		}
		group := r.packagesFrom(i)
		if err := r.packages(ctx, group); err != nil {
			return err
		}
		i += len(group) - 1
	}
	if err := r.restart(ctx); err != nil {
		return err
	}
	for _, s := range r.plan.settled {
		if err := r.marker.Undone(s.left, s.records...); err != nil {
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

func (r *restore) packages(ctx context.Context, group []*Action) error {
	want := map[string]image.Image{}
	for _, a := range group {
		if err := r.marker.Begun(a.records...); err != nil {
			return err
		}
		want[a.Subject.Name] = a.whole
	}
	lost := image.Putter{Host: r.host}.Packages(ctx, want)
	for _, a := range group {
		if err := lost[a.Subject.Name]; err != nil {
			if err := r.left(a, err.Error()); err != nil {
				return err
			}
			continue
		}
		if err := r.restored(a); err != nil {
			return err
		}
	}
	return nil
}

// act puts one subject back, part by part.
func (r *restore) act(ctx context.Context, a *Action) error {
	if a.done {
		return nil
	}
	a.done = true
	if !path.IsAbs(a.Parts[0].Want.Name) {
		if err := r.marker.Begun(a.records...); err != nil {
			return err
		}
	}
	for _, part := range inOrder(a.Parts) {
		if err := r.parent(ctx, part); err != nil {
			return err
		}
		err := image.Putter{Host: r.host, Content: part.chapter}.Put(ctx, a.Subject, part.Want)
		var damaged *journal.Damaged
		switch {
		case errors.As(err, &damaged):
			return err
		case errors.Is(err, image.NotEmpty):
			return r.left(a, image.NotEmpty.Error())
		case err != nil:
			r.did.Failed = append(r.did.Failed, Left{Subject: a.Subject.String(), Step: a.Step, Why: err.Error()})
			return nil
		}
		r.units = r.units || a.Subject.Kind == host.KindBoot || strings.Contains(part.Want.Name, "/systemd/system/") || strings.HasPrefix(part.Want.Name, "/etc/init.d/")
	}
	return r.restored(a)
}

// inOrder has what goes first, from the deepest up, and then what comes, from the top down.
func inOrder(parts []Part) []Part {
	var going, coming []Part
	for _, p := range parts {
		if p.Want.Type == image.Absent {
			going = append(going, p)
		} else {
			coming = append(coming, p)
		}
	}
	byName := func(a, b Part) int { return strings.Compare(a.Want.Name, b.Want.Name) }
	slices.SortFunc(going, func(a, b Part) int { return byName(b, a) })
	slices.SortFunc(coming, byName)
	return append(going, coming...)
}

// parent puts the directory of a path back first, if that is still to come.
func (r *restore) parent(ctx context.Context, part Part) error {
	if part.Want.Type == image.Absent || !path.IsAbs(part.Want.Name) {
		return nil
	}
	dir := path.Dir(part.Want.Name)
	if _, err := r.host.Files.Lstat(dir); err == nil || dir == "/" {
		return nil
	}
	for _, a := range r.plan.Actions {
		if !a.done && a.Subject.Kind != host.KindPackage && slices.ContainsFunc(a.Parts, func(p Part) bool { return p.Want.Name == dir && p.Want.Type == image.Directory }) {
			return r.act(ctx, a)
		}
	}
	return nil
}

// restart restarts the units whose files were put back, when all else is done.
func (r *restore) restart(ctx context.Context) error {
	if r.units {
		if err := r.host.ReloadUnits(ctx); err != nil {
			r.did.Failed = append(r.did.Failed, Left{Subject: "units", Why: err.Error()})
		}
	}
	for _, unit := range r.plan.Restart {
		if err := r.host.Units.Act(ctx, host.Restart, unit, true); err != nil {
			r.did.Failed = append(r.did.Failed, Left{Subject: "unit " + unit, Why: err.Error()})
			continue
		}
		r.did.Restarted = append(r.did.Restarted, unit)
		if err := r.marker.Undone("", r.plan.restarts[unit]...); err != nil {
			return err
		}
	}
	return nil
}

func (r *restore) restored(a *Action) error {
	r.did.Restored = append(r.did.Restored, a.Subject.String())
	return r.marker.Undone("", a.records...)
}

func (r *restore) left(a *Action, why string) error {
	r.did.Left = append(r.did.Left, Left{Subject: a.Subject.String(), Step: a.Step, Why: why})
	return r.marker.Undone(why, a.records...)
}
