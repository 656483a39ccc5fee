package journal

import (
	"errors"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Planned is a path that a later step of the run creates if it does not exist.
type Planned struct {
	Step string `json:"step"`
	Path string `json:"path"`

	Shown Names `json:"shown,omitempty"` // see Redactor; set by the recorder
}

// SetPlan sets the function that returns the paths which the next steps are about to create; it returns each path once.
// The recorder calls it when a change has to wait for the disk anyway, and records which of the paths do not exist. A
// step that creates one of them later does not have to wait: the journal already knows that the path did not exist.
func (r *Recorder) SetPlan(next func() []Planned) {
	r.mu.Lock()
	r.plan = next
	r.mu.Unlock()
}

// persist writes the record of a change to disk as the kind of change requires: it syncs the chapter, only writes it,
// or has waitForDisk wait for it.
func (r *Recorder) persist(c Change) error {
	switch {
	case c.Subject.Kind == host.KindCommand: // the program may crash the host, and the next run must know which step did
		return r.writer.sync()
	case c.Before == nil: // the change cannot be undone, so it need not wait
		return r.writer.flush()
	case c.Subject.Kind == host.KindFile && r.planned[c.Subject.Name] &&
		c.Before.Part(c.Subject.Name).Type == image.Absent:
		return nil // the journal already has the path as planned
	}
	err := r.recordPlanned()
	r.writer.need()
	return err
}

// recordPlanned records the planned paths, and their parent directories, that do not exist. It leaves out a path that
// cannot be examined, for example since it is refused: the path belongs to a later step, which fails in its own turn.
func (r *Recorder) recordPlanned() error {
	if r.plan == nil {
		return nil
	}
	h := r.host.Unattributed()
	for _, next := range r.plan() {
		for _, path := range h.Missing(next.Path) {
			s := host.Subject{Kind: host.KindFile, Name: path}
			if _, known := r.records[s]; known || r.planned[path] || r.skips(s) {
				continue
			}
			plan := Planned{next.Step, path, namesOf(s, image.Image{}, r.hide)}
			if err := r.writer.add(kindPlanned, plan); err != nil {
				return err
			}
			r.planned[path] = true
		}
	}
	return nil
}

// settlePlanned writes records for the planned paths that exist. An interrupted run created them, and had not yet
// written their records to disk. It returns these records. A path that cannot be examined may exist, so it gets
// a record.
func (c *Chapter) settlePlanned(w *writer, h *host.Host) (all []*Record, err error) {
	apart := h.Unattributed()
	for _, path := range slices.Sorted(maps.Keys(c.planned)) {
		_, err := apart.Files.Lstat(path)
		if found, err := walk.Found(err); errors.Is(err, host.ErrNotDir) || err == nil && !found {
			continue
		}
		r := &Record{Chapter: c.Number, Run: c.Runs[len(c.Runs)-1], Boot: c.boot, Seq: len(c.Records), Change: Change{
			Step: c.planned[path].Step, Shown: c.planned[path].Shown, Subject: host.Subject{Kind: host.KindFile, Name: path},
			Before: &image.Image{Parts: []image.Part{{Name: path, Type: image.Absent}}},
		}}
		if err := w.add(kindChange, r.Change); err != nil {
			return nil, err
		}
		w.records++
		c.Records, all = append(c.Records, r), append(all, r)
	}
	clear(c.planned)
	return all, nil
}
