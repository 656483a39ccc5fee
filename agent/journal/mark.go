package journal

import (
	"errors"
)

// Marker notes in chapters how far a restore has come.
type Marker struct {
	journal Journal
	run     string
	writers map[int]*writer
	byName  map[int]*Chapter
}

// Mark makes the marker of a run that restores records of the given chapters.
func (j Journal) Mark(run string, chapters []*Chapter) *Marker {
	m := &Marker{journal: j, run: run, writers: map[int]*writer{}, byName: map[int]*Chapter{}}
	for _, c := range chapters {
		m.byName[c.Number] = c
	}
	return m
}

func (m *Marker) writer(number int) (*writer, error) {
	if w, ok := m.writers[number]; ok {
		return w, nil
	}
	w, err := m.journal.extend(m.byName[number])
	if err != nil {
		return nil, explain(err)
	}
	m.writers[number] = w
	return w, nil
}

// Begun notes that records are about to be settled, and returns when that is safe.
func (m *Marker) Begun(records ...*Record) error {
	for _, r := range records {
		w, err := m.writer(r.Chapter)
		if err != nil {
			return err
		}
		if err := w.add(kindBegun, begunBody{r.Seq, m.run}); err != nil {
			return explain(err)
		}
		r.Begun = true
	}
	return m.Sync()
}

// Undone notes that records are settled, and why if they were left as they are.
func (m *Marker) Undone(left string, records ...*Record) error {
	for _, r := range records {
		w, err := m.writer(r.Chapter)
		if err != nil {
			return err
		}
		u := Undone{Run: m.run, Left: left}
		if err := w.add(kindUndone, undoneBody{r.Seq, u}); err != nil {
			return explain(err)
		}
		r.Undone = &u
	}
	return nil
}

// Sync returns when all that was noted is safe.
func (m *Marker) Sync() error {
	var errs []error
	for _, w := range m.writers {
		errs = append(errs, w.sync())
	}
	return explain(errors.Join(errs...))
}

// Close ends the marking.
func (m *Marker) Close() error {
	var errs []error
	for _, w := range m.writers {
		errs = append(errs, w.close())
	}
	return explain(errors.Join(errs...))
}
