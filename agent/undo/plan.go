package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	safe "github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Plan is what a restore is going to do.
type Plan struct {
	Actions []*Action // in the order in which they are done
	Left    []Left
	Restart []string // units that run and that the runs have restarted

	chapters []*journal.Chapter
	records  []*journal.Record
	left     map[*journal.Record]string   // why a record is not taken back
	refused  []*journal.Record            // of paths that another user leads elsewhere; they stay to be tried again
	restarts map[string][]*journal.Record // by unit
	host     *host.Host
}

// Make plans to take records back that are given newest first.
func Make(ctx context.Context, h *host.Host, chapters []*journal.Chapter, records []*journal.Record) (*Plan, error) {
	p := &Plan{host: h, chapters: chapters, records: records, left: map[*journal.Record]string{}, restarts: map[string][]*journal.Record{}}
	boot := journal.BootID(h)
	w := &walk{boot: boot, look: image.Taker{Host: h}, plan: p, images: map[host.Subject]image.Image{}, actions: map[host.Subject]*Action{}}
	for _, r := range records {
		if r.Before == nil {
			p.leave(r.Subject.String(), r.Step, r.Lost, r)
			continue
		}
		w.back(ctx, r)
	}
	for _, a := range w.order {
		p.take(a)
	}
	slices.SortStableFunc(p.Actions, inOrder)
	p.restart()
	return p, nil
}

func (p *Plan) leave(subject, step, why string, records ...*journal.Record) {
	p.Left = append(p.Left, Left{Subject: subject, Step: step, Why: why})
	for _, r := range records {
		p.left[r] = why
	}
}

// unread leaves what cannot be looked at.
func (p *Plan) unread(s host.Subject, r *journal.Record, err error) {
	why, refused := refusal(p.host, err)
	if !refused {
		p.leave(s.String(), r.Step, "what is there now could not be read: "+err.Error(), r)
		return
	}
	p.Left = append(p.Left, Left{Subject: s.String(), Step: r.Step, Why: why})
	p.refused = append(p.refused, r)
}

// refusal says why a path stays that is refused because of another user's link, and what to do about it.
func refusal(h *host.Host, err error) (why string, refused bool) {
	var unsafe *safe.UnsafeError
	if !errors.As(err, &unsafe) {
		return "", false
	}
	why = unsafe.Error() + "; " + unsafe.Hint() + ", then run: corpus-agent rollback --converge"
	h.WithNames(err, &why)
	return why, true
}

// inOrder goes back in time. What goes at one time goes from the deepest up, before what comes from
// the top down.
func inOrder(a, b *Action) int {
	if c := b.at.compare(a.at); c != 0 {
		return c
	}
	switch {
	case a.goes() && b.goes():
		return cmp.Compare(b.Subject.Name, a.Subject.Name)
	case a.goes():
		return -1
	case b.goes():
		return 1
	}
	return cmp.Compare(a.Subject.Name, b.Subject.Name)
}

// acted reports whether a run started or restarted the unit, and did not only see to its boot.
func (a *Action) acted() bool {
	return slices.ContainsFunc(a.records, func(r *journal.Record) bool { return r.Subject.Kind == host.KindUnit })
}

func (a *Action) goes() bool { return len(a.Parts) > 0 && a.Parts[0].Want.Type == image.Absent }

// take takes over what was found out about a subject.
func (p *Plan) take(a *Action) {
	blocked := false
	var parts []*Part
	for _, part := range a.Parts {
		a.whole.Parts = append(a.whole.Parts, part.Want)
		kept := part.Want.Kept(part.Now)
		if part.blocked == "" && !kept {
			part.blocked = part.Want.Lost
			if path.IsAbs(part.Want.Name) {
				part.blocked = "its content was not kept: " + part.Want.Lost
			}
		}
		switch {
		case part.Now.Identical(part.Want), part.blocked != "" && part.Now.Same(part.Want):
		case part.Want.Type == image.Special:
			part.blocked = "pipes, sockets and devices are not made again"
		case kept:
			parts = append(parts, part)
		}
		if part.blocked != "" {
			subject := a.Subject.String()
			if path.IsAbs(part.Want.Name) && part.Want.Name != a.Subject.Name {
				subject += " in " + part.Want.Name
			}
			p.leave(subject, a.Step, part.blocked, part.since...)
			p.Left[len(p.Left)-1].Changed = part.changed
			blocked = true
		}
	}
	a.Parts = parts
	switch {
	case len(parts) > 0:
		p.Actions = append(p.Actions, a)
	case a.Subject.Kind == host.KindUnit && !blocked && a.whole.Parts[0].Runs() && a.acted():
		p.restarts[a.Subject.Name] = a.records
	}
}

// restart decides which units are restarted: those that run, ran before, and were restarted or
// reloaded by the runs, since what they run on is taken back. A restore that was cut short may have
// done all but that.
func (p *Plan) restart() {
	for unit, records := range p.restarts {
		if len(p.Actions) > 0 || slices.ContainsFunc(records, func(r *journal.Record) bool { return r.Begun }) {
			p.Restart = append(p.Restart, unit)
		}
	}
	slices.Sort(p.Restart)
}

// Done reports whether there is nothing to do, to say or to note.
func (p *Plan) Done() bool { return len(p.records) == 0 }

// summary is what is said before anything is done. Programs read it, so its lists are empty rather than
// missing.
func (p *Plan) summary() Summary {
	return Summary{Restored: []string{}, Left: append([]Left{}, p.Left...), Restarted: []string{}}
}

// Summary is what the plan would do.
func (p *Plan) Summary() Summary {
	s := p.summary()
	s.Restarted = append(s.Restarted, p.Restart...)
	for _, a := range p.Actions {
		s.Restored = append(s.Restored, a.Subject.String())
	}
	return s
}

// walk goes back through records, as if each were taken back. What is at a path has one history,
// whichever subjects it was a part of; so a path is an action of its own.
type walk struct {
	look    image.Taker
	boot    string
	plan    *Plan
	images  map[host.Subject]image.Image // as subjects are now
	actions map[host.Subject]*Action
	order   []*Action
}

func (w *walk) back(ctx context.Context, r *journal.Record) {
	images := []image.Image{*r.Before}
	if r.After != nil {
		images = append(images, *r.After)
	}
	for _, name := range image.Names(images...) {
		s := r.Subject
		if path.IsAbs(name) && s.Kind != host.KindUser && s.Kind != host.KindGroup {
			s = host.Subject{Kind: host.KindFile, Name: name}
		} else if s.Kind == host.KindBoot {
			s.Kind = host.KindUnit // whether it runs
		}
		part, err := w.part(ctx, s, name, r)
		if err != nil {
			w.plan.unread(s, r, err)
			continue
		}
		part.since = append(part.since, r)
		w.step(part, r)
	}
}

// step takes one record of a part back.
func (w *walk) step(part *Part, r *journal.Record) {
	before := r.Before.Part(part.Now.Name)
	switch {
	case part.blocked != "" || part.Want.Identical(before):
	case r.After == nil, r.Begun && halfBack(part.Now, before), w.rebooted(part, r), part.Want.Same(r.After.Part(part.Now.Name)):
		part.Want, part.chapter = before, w.chapter(r.Chapter)
	case part.Want.Same(before):
	default:
		part.blocked, part.changed = changedSince(part, r), true
	}
}

// changedSince says that a part is not as a run left it. A unit changes its state without anybody's doing, as when its
// program crashes.
func changedSince(part *Part, r *journal.Record) string {
	left := r.After.Part(part.Now.Name)
	unit := r.Subject.Kind == host.KindUnit || r.Subject.Kind == host.KindBoot
	if !unit || part.Now.Name != image.UnitState || part.Now.Text == "" || left.Text == "" {
		return fmt.Sprintf("it was changed since run %s left it", r.Run)
	}
	return fmt.Sprintf("it is %s, and run %s left it %s: its program ended, or it was started or stopped, since", part.Now.Text, r.Run, left.Text)
}

// halfBack reports whether a part may be what a restore that was cut short has left: anything if it is
// no file, and a file or directory that lacks no more than its owner, mode, attributes and time.
func halfBack(now, before image.Part) bool {
	return !path.IsAbs(now.Name) || now.Type == before.Type && now.Sum == before.Sum && now.Text == before.Text
}

// rebooted reports whether a unit was last started by nothing but a boot.
func (w *walk) rebooted(part *Part, r *journal.Record) bool {
	units := r.Subject.Kind == host.KindUnit || r.Subject.Kind == host.KindBoot
	return units && part.Now.Name == image.UnitState && r.Boot != w.boot
}

func (w *walk) chapter(number int) *journal.Chapter {
	i := slices.IndexFunc(w.plan.chapters, func(c *journal.Chapter) bool { return c.Number == number })
	return w.plan.chapters[i]
}

// part is what a part of a subject has come to by now.
func (w *walk) part(ctx context.Context, s host.Subject, name string, r *journal.Record) (*Part, error) {
	now, ok := w.images[s]
	if !ok {
		var err error
		if now, err = w.look.Take(ctx, s); err != nil {
			return nil, err
		}
		w.images[s] = now
	}
	a, ok := w.actions[s]
	if !ok {
		a = &Action{Subject: s}
		w.actions[s] = a
		w.order = append(w.order, a)
	}
	// What a cut run left, nobody has looked at for secrets.
	a.Secret = a.Secret || r.Secret || r.After == nil
	a.Step, a.at = r.Step, placeOf(r) // the oldest one's at last
	if !slices.Contains(a.records, r) {
		a.records = append(a.records, r)
	}
	for _, p := range a.Parts {
		if p.Now.Name == name {
			return p, nil
		}
	}
	p := &Part{Now: now.Part(name), Want: now.Part(name)}
	a.Parts = append(a.Parts, p)
	return p, nil
}
