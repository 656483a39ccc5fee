package journal

import (
	"errors"
)

// Marker records the progress of a restore in chapters.
type Marker struct {
	journal  Journal
	run      string
	writers  map[int]*writer
	chapters map[int]*Chapter // by number
}

// Mark returns the Marker for the run with ID run, which restores records of chapters.
func (j Journal) Mark(run string, chapters []*Chapter) *Marker {
	m := &Marker{journal: j, run: run, writers: map[int]*writer{}, chapters: map[int]*Chapter{}}
	for _, c := range chapters {
		m.chapters[c.Number] = c
	}
	return m
}

func (m *Marker) writer(number int) (*writer, error) {
	if w, ok := m.writers[number]; ok {
		return w, nil
	}
	w, err := m.journal.extend(m.chapters[number])
	if err != nil {
		return nil, explain(err)
	}
	m.writers[number] = w
	return w, nil
}

// Begun records that a restore of records is about to begin, and syncs the chapters.
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

// Undone records that records were restored, or, with left, why they were not. It does not sync the chapters.
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

// Sync syncs the chapters to disk.
func (m *Marker) Sync() error {
	var errs []error
	for _, w := range m.writers {
		errs = append(errs, w.sync())
	}
	return explain(errors.Join(errs...))
}

// Close syncs and closes the chapters.
func (m *Marker) Close() error {
	var errs []error
	for _, w := range m.writers {
		errs = append(errs, w.close())
	}
	return explain(errors.Join(errs...))
}
