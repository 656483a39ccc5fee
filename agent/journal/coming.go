package journal

import (
	"errors"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Coming is a path that a step will make if it is not there.
type Coming struct {
	Step string `json:"step"`
	Path string `json:"path"`
}

// Ahead says who knows what the next steps are going to make. It is asked when a change has to wait for
// the disk anyway: what is not there then, and is made before long, has nothing to wait for any more,
// since it is known by then that it was not there.
func (r *Recorder) Ahead(next func() []Coming) {
	r.mu.Lock()
	r.ahead = next
	r.mu.Unlock()
}

// matters decides whether a change has to wait until what was just written about it is safe.
func (r *Recorder) matters(c Change) error {
	switch {
	case c.Subject.Kind == host.KindCommand: // it may take the host down, and the next run has to know which step did
		return r.writer.sync()
	case c.Before == nil: // then nobody waits for it
		return r.writer.flush()
	case c.Subject.Kind == host.KindFile && r.coming[c.Subject.Name] && c.Before.Part(c.Subject.Name).Type == image.Absent:
		return nil // that is known
	}
	err := r.foresee()
	r.writer.need()
	return err
}

// foresee writes down what is not there and said to come.
func (r *Recorder) foresee() error {
	if r.ahead == nil {
		return nil
	}
	for _, next := range r.ahead() {
		for _, path := range r.host.Missing(next.Path) {
			s := host.Subject{Kind: host.KindFile, Name: path}
			if _, known := r.records[s]; known || r.coming[path] || r.skips(s) {
				continue
			}
			if err := r.writer.add(kindComing, Coming{next.Step, path}); err != nil {
				return err
			}
			r.coming[path] = true
		}
	}
	return nil
}

// made writes the records of what a run that was cut short has made without another word: it said that
// it was to come, and it is there.
func (c *Chapter) made(w *writer, h *host.Host) (all []*Record, err error) {
	for _, path := range slices.Sorted(maps.Keys(c.coming)) {
		_, err := h.Files.Lstat(path)
		if found, err := walk.Found(err); err != nil && !errors.Is(err, host.ErrNotDir) {
			return nil, err
		} else if !found {
			continue
		}
		r := &Record{Chapter: c.Number, Run: c.Runs[len(c.Runs)-1], Boot: c.boot, Seq: len(c.Records), Change: Change{
			Step: c.coming[path], Subject: host.Subject{Kind: host.KindFile, Name: path}, Before: &image.Image{Parts: []image.Part{{Name: path, Type: image.Absent}}},
		}}
		if err := w.add(kindChange, r.Change); err != nil {
			return nil, err
		}
		w.records++
		c.Records, all = append(c.Records, r), append(all, r)
	}
	clear(c.coming)
	return all, nil
}
