package undo

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Plan is what a restore is going to do.
type Plan struct {
	Actions []*Action // in the order in which they are done
	Left    []Left
	Restart []string // units that run and that the runs have restarted

	chapters []*journal.Chapter
	settled  []settled                    // records with nothing to do
	restarts map[string][]*journal.Record // by unit
}

// settled are records that are done with, and why if they are left.
type settled struct {
	records []*journal.Record
	left    string
}

// Make plans to take records back that are given newest first.
func Make(ctx context.Context, h *host.Host, chapters []*journal.Chapter, records []*journal.Record) (*Plan, error) {
	p := &Plan{chapters: chapters, restarts: map[string][]*journal.Record{}}
	bySubject := map[host.Subject][]*journal.Record{}
	var order []host.Subject
	for _, r := range records {
		if r.Before == nil {
			p.leave(r.Change, r.Lost, r)
			continue
		}
		if bySubject[r.Subject] == nil {
			order = append(order, r.Subject)
		}
		bySubject[r.Subject] = append(bySubject[r.Subject], r)
	}
	for _, s := range order {
		if err := p.subject(ctx, h, s, bySubject[s]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(p.Actions, func(a, b *Action) int { return b.at.compare(a.at) })
	p.restart()
	return p, nil
}

func (p *Plan) leave(c journal.Change, why string, records ...*journal.Record) {
	p.Left = append(p.Left, Left{Subject: c.Subject.String(), Step: c.Step, Why: why})
	p.settled = append(p.settled, settled{records, why})
}

// subject plans for one subject by its records, newest first.
func (p *Plan) subject(ctx context.Context, h *host.Host, s host.Subject, records []*journal.Record) error {
	look := image.Taker{Host: h}
	now, err := look.Take(ctx, s)
	if err != nil {
		p.leave(records[0].Change, "what is there now could not be read: "+err.Error(), records...)
		return nil
	}
	walk := &walk{look: look, subject: s, now: now, parts: map[string]*Part{}, blocked: map[string]string{}}
	for _, r := range records {
		if err := walk.back(r, p.chapter(r.Chapter)); err != nil {
			return err
		}
	}
	a := &Action{Subject: s, Step: records[len(records)-1].Step, records: records, at: placeOf(records[len(records)-1])}
	for _, r := range records {
		a.Secret = a.Secret || r.Secret
	}
	for _, name := range walk.names {
		part := walk.parts[name]
		if part.Now.Identical(part.Want) || walk.blocked[name] != "" && part.Now.Same(part.Want) {
			continue
		}
		if part.Want.Lost != "" {
			walk.blocked[name] = "its content was not kept: " + part.Want.Lost
			continue
		}
		if part.Want.Type == image.Special {
			walk.blocked[name] = "pipes, sockets and devices are not made again"
			continue
		}
		a.Parts = append(a.Parts, *part)
	}
	p.take(a, walk)
	return nil
}

// take takes over what was found out about a subject.
func (p *Plan) take(a *Action, w *walk) {
	why := ""
	for _, name := range w.names {
		a.whole.Parts = append(a.whole.Parts, w.parts[name].Want)
		if reason := w.blocked[name]; reason != "" {
			subject := a.Subject.String()
			if name != a.Subject.Name && path.IsAbs(name) {
				subject += " in " + name
			}
			p.Left = append(p.Left, Left{Subject: subject, Step: a.Step, Why: reason})
			why = reason
		}
	}
	switch {
	case len(a.Parts) > 0:
		p.Actions = append(p.Actions, a)
	case a.Subject.Kind == host.KindUnit && why == "" && w.parts["state"].Now.Runs():
		p.restarts[a.Subject.Name] = a.records
	default:
		p.settled = append(p.settled, settled{a.records, why})
	}
}

// restart decides which units are restarted: those that run, ran before, and were restarted or
// reloaded by the runs, since what they run on is taken back. A restore that was cut short may have
// done all but that.
func (p *Plan) restart() {
	for unit, records := range p.restarts {
		begun := slices.ContainsFunc(records, func(r *journal.Record) bool { return r.Begun })
		if len(p.Actions) > 0 || begun {
			p.Restart = append(p.Restart, unit)
			continue
		}
		p.settled = append(p.settled, settled{records: records})
	}
	slices.Sort(p.Restart)
}

func (p *Plan) chapter(number int) *journal.Chapter {
	i := slices.IndexFunc(p.chapters, func(c *journal.Chapter) bool { return c.Number == number })
	return p.chapters[i]
}

// Done reports whether there is nothing to do, to say or to note.
func (p *Plan) Done() bool { return len(p.Actions)+len(p.Restart)+len(p.settled) == 0 }

// Summary is what the plan would do.
func (p *Plan) Summary() Summary {
	s := Summary{Left: p.Left, Restarted: p.Restart}
	for _, a := range p.Actions {
		s.Restored = append(s.Restored, a.Subject.String())
	}
	return s
}

// walk goes back through the records of one subject, as if each were taken back.
type walk struct {
	look    image.Taker
	subject host.Subject
	now     image.Image
	names   []string
	parts   map[string]*Part
	blocked map[string]string // parts that stay as they are, and why
}

func (w *walk) back(r *journal.Record, c *journal.Chapter) error {
	images := []image.Image{*r.Before}
	if r.After != nil {
		images = append(images, *r.After)
	}
	for _, name := range image.Names(images...) {
		part, err := w.part(name)
		if err != nil {
			return err
		}
		before := r.Before.Part(name)
		switch {
		case w.blocked[name] != "" || part.Want.Identical(before):
		case r.After == nil, r.Begun && !path.IsAbs(name), part.Want.Same(r.After.Part(name)):
			part.Want, part.chapter = before, c
		case part.Want.Same(before):
		default:
			w.blocked[name] = fmt.Sprintf("it was changed since run %s left it", r.Run)
		}
	}
	return nil
}

// part is what a part has come to by now.
func (w *walk) part(name string) (*Part, error) {
	if p, ok := w.parts[name]; ok {
		return p, nil
	}
	now := w.now.Part(name)
	if account := w.subject.Kind == host.KindUser || w.subject.Kind == host.KindGroup; now.Type == image.Absent && path.IsAbs(name) && !account {
		// An image of several files has only those that belong to its subject now.
		i, err := w.look.Take(context.Background(), host.Subject{Kind: host.KindFile, Name: name})
		if err != nil {
			return nil, err
		}
		now = i.Part(name)
	}
	p := &Part{Now: now, Want: now}
	w.parts[name] = p
	w.names = append(w.names, name)
	return p, nil
}
