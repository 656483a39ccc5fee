package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	safe "github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Plan is the list of actions of a restore.
type Plan struct {
	Actions []*Action // in the order of their execution
	Left    []Left
	Restart []string // running units that the undone runs had restarted

	show     func(string) string // redacts names in what is shown
	chapters []*journal.Chapter
	records  []*journal.Record
	left     map[*journal.Record]string   // why a record is not undone
	refused  []*journal.Record            // of paths with another user's link; the next restore retries them
	restarts map[string][]*journal.Record // by unit
	host     *host.Host
}

// NewPlan compares records with the state of h and returns the plan to undo them. The records must be ordered from the
// newest to the oldest.
func NewPlan(ctx context.Context, h *host.Host, chapters []*journal.Chapter, records []*journal.Record) (*Plan, error) {
	p := &Plan{host: h, show: journal.Redactor(chapters), chapters: chapters, records: records,
		left: map[*journal.Record]string{}, restarts: map[string][]*journal.Record{}}
	boot := journal.BootID(h)
	w := &walk{boot: boot, look: image.Taker{Host: h}, plan: p, images: map[host.Subject]image.Image{},
		actions: map[host.Subject]*Action{}}
	for _, r := range records {
		if r.Before == nil {
			p.leave(r.Subject.String(), r.Step, r.Lost, r)
			continue
		}
		if w.keeps(r) { // an older agent recorded it
			p.leave(r.Subject.String(), r.Step, keptOfGuests, r)
			continue
		}
		w.undo(ctx, r)
	}
	for _, a := range w.order {
		p.add(a)
	}
	structsort.Func(p.Actions, compareActions)
	p.restart()
	return p, nil
}

// leave notes that a subject is not restored, and that records are not undone.
func (p *Plan) leave(subject, step, why string, records ...*journal.Record) {
	p.Left = append(p.Left, Left{Subject: subject, Step: step, Why: why})
	for _, r := range records {
		p.left[r] = why
	}
}

// unread notes that a subject is not restored because it cannot be read.
func (p *Plan) unread(s host.Subject, r *journal.Record, err error) {
	why, refused := refusal(p.host, err)
	if !refused {
		p.leave(s.String(), r.Step, "what is there now could not be read: "+err.Error(), r)
		return
	}
	p.Left = append(p.Left, Left{Subject: s.String(), Step: r.Step, Why: why})
	p.refused = append(p.refused, r)
}

// refusal reports whether err means that another user's link is in a path, and returns the reason with a hint.
func refusal(h *host.Host, err error) (why string, refused bool) {
	var unsafe *safe.UnsafeError
	if !errors.As(err, &unsafe) {
		return "", false
	}
	why = unsafe.Error() + "; " + diag.Exposed.Coded(unsafe.Hint()+", then run: corpus-agent rollback --converge")
	h.WithNames(err, &why)
	return why, true
}

// compareActions orders actions from the newest record to the oldest. Actions of the same record are ordered so that
// removals come first, the deepest path first, and then other paths, a directory before its content.
func compareActions(a, b *Action) int {
	if c := b.at.compare(a.at); c != 0 {
		return c
	}
	switch {
	case a.removes() && b.removes():
		return cmp.Compare(b.Subject.Name, a.Subject.Name)
	case a.removes():
		return -1
	case b.removes():
		return 1
	}
	return cmp.Compare(a.Subject.Name, b.Subject.Name)
}

// acted reports whether a run started or restarted the unit, rather than only enabling or disabling it.
func (a *Action) acted() bool {
	return slices.ContainsFunc(a.records, func(r *journal.Record) bool { return r.Subject.Kind == host.KindUnit })
}

// removes reports whether the action removes the subject.
func (a *Action) removes() bool { return len(a.Parts) > 0 && a.Parts[0].Want.Type == image.Absent }

// add adds an action to the plan, without the parts that need no change or cannot be restored.
func (p *Plan) add(a *Action) {
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
			part.blocked = "pipes, sockets and devices are not recreated"
		case kept:
			parts = append(parts, part)
		}
		if part.blocked != "" {
			subject := a.Subject.String()
			if path.IsAbs(part.Want.Name) && part.Want.Name != a.Subject.Name {
				subject += " in " + diag.OneLine(part.Want.Name)
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

// restart sets p.Restart to the units that run, ran before, and were restarted or reloaded by the undone runs, since
// the restore changes their files. An interrupted restore may have restored all files and not restarted the units.
func (p *Plan) restart() {
	for unit, records := range p.restarts {
		if len(p.Actions) > 0 || slices.ContainsFunc(records, func(r *journal.Record) bool { return r.Begun }) {
			p.Restart = append(p.Restart, unit)
		}
	}
	slices.Sort(p.Restart)
}

// Done reports whether there are no records to undo.
func (p *Plan) Done() bool { return len(p.records) == 0 }

// summary returns the Summary at the start of a restore. Its lists are empty rather than nil, for its JSON form.
func (p *Plan) summary() Summary {
	return Summary{Restored: []string{}, Left: append([]Left{}, p.Left...), Restarted: []string{}}
}

// Summary returns the Summary of a dry run.
func (p *Plan) Summary() Summary {
	s := p.summary()
	s.Restarted = append(s.Restarted, p.Restart...)
	for _, a := range p.Actions {
		s.Restored = append(s.Restored, a.Subject.String())
	}
	redact.Each(&s, p.show)
	return s
}

// walk visits records and computes the state after undoing each. A path has one history even if it was a part of
// several subjects, so each path is a separate action.
type walk struct {
	look    image.Taker
	boot    string
	plan    *Plan
	images  map[host.Subject]image.Image // current images
	actions map[host.Subject]*Action
	order   []*Action
}

// keptOfGuests is why the changes of what belongs to guests stay.
const keptOfGuests = "what belongs to guests is kept, their disks and records too"

// keeps reports whether a record is of a path that belongs to the guests of a node.
func (w *walk) keeps(r *journal.Record) bool {
	kind := r.Subject.Kind
	return (kind == host.KindFile || kind == host.KindTree) && journal.OfGuests(w.look.Host, r.Subject.Name)
}

func (w *walk) undo(ctx context.Context, r *journal.Record) {
	images := []image.Image{*r.Before}
	if r.After != nil {
		images = append(images, *r.After)
	}
	for _, name := range image.Names(images...) {
		if r.Subject.Kind == host.KindTree && journal.OfGuests(w.look.Host, name) { // a tree that has those of guests
			continue
		}
		s := r.Subject
		if path.IsAbs(name) && s.Kind != host.KindUser && s.Kind != host.KindGroup {
			s = host.Subject{Kind: host.KindFile, Name: name}
		} else if s.Kind == host.KindBoot {
			s.Kind = host.KindUnit // the part is the unit's state, the only part of a boot image that is not a path
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

// step undoes one record of a part, or marks the part as blocked.
func (w *walk) step(part *Part, r *journal.Record) {
	before := r.Before.Part(part.Now.Name)
	switch {
	case part.blocked != "" || part.Want.Identical(before):
	case r.After == nil, r.Begun && halfRestored(part.Now, before), w.rebooted(part, r),
		part.Want.Same(r.After.Part(part.Now.Name)):
		part.Want, part.chapter = before, w.chapter(r.Chapter)
	case part.Want.Same(before):
	default:
		part.blocked, part.changed = changedSince(part, r), true
	}
}

// changedSince returns the reason for a part that is not as the run left it. The state of a unit can also change by
// itself, for example when its program crashes.
func changedSince(part *Part, r *journal.Record) string {
	left := r.After.Part(part.Now.Name)
	unit := r.Subject.Kind == host.KindUnit || r.Subject.Kind == host.KindBoot
	if !unit || part.Now.Name != image.UnitState || part.Now.Text == "" || left.Text == "" {
		return fmt.Sprintf("it was changed since run %s left it", r.Run)
	}
	return fmt.Sprintf("it is %s, and run %s left it %s: its program ended, or it was started or stopped, since",
		part.Now.Text, r.Run, left.Text)
}

// halfRestored reports whether an interrupted restore may have left a part as it is now. This is true for any part that
// is not a path, and for a path that differs only in owner, mode, attributes and time.
func halfRestored(now, before image.Part) bool {
	return !path.IsAbs(now.Name) || now.Type == before.Type && now.Sum == before.Sum && now.Text == before.Text
}

// rebooted reports whether part is the state of a unit, and the host was booted after the run.
func (w *walk) rebooted(part *Part, r *journal.Record) bool {
	units := r.Subject.Kind == host.KindUnit || r.Subject.Kind == host.KindBoot
	return units && part.Now.Name == image.UnitState && r.Boot != w.boot
}

func (w *walk) chapter(number int) *journal.Chapter {
	i := slices.IndexFunc(w.plan.chapters, func(c *journal.Chapter) bool { return c.Number == number })
	return w.plan.chapters[i]
}

// part returns the part of a subject with the changes that walk has planned for it so far.
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
	// The content that an interrupted run left has not been searched for secrets.
	a.Secret = a.Secret || r.Secret || r.After == nil
	a.Step, a.at = r.Step, placeOf(r) // the oldest record is visited last
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
