package journal

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Parallel says that several states are at work at once from now on. What one of them leaves is only
// known when all have ended, which is when Sync is called.
func (r *Recorder) Parallel() {
	r.mu.Lock()
	r.parallel = true
	r.mu.Unlock()
}

// Settle writes what the subjects that changed have become. It returns before that is done, with the
// error of the time before.
func (r *Recorder) Settle() error {
	if r.settling.Load() {
		return nil // whoever changed something since would have waited for that
	}
	r.mu.Lock()
	late := r.late
	r.late = nil
	if r.parallel || len(r.open) == 0 {
		r.mu.Unlock()
		return late
	}
	r.settling.Store(true)
	go func() {
		r.late = r.settle()
		r.settling.Store(false)
		r.mu.Unlock()
	}()
	return late
}

func (r *Recorder) settle() error {
	for _, entry := range r.open {
		if err := r.settleOne(entry); err != nil {
			return explain(err)
		}
	}
	r.open = nil
	return nil
}

func (r *Recorder) settleOne(entry *recorded) error {
	b, err := after(r.writer, r.host, entry, r.hide)
	if b != nil && err == nil {
		entry.after = &b.After
	}
	entry.open = false
	return err
}

// Sync settles what is open and returns when neither the host nor the journal can lose what was done
// by a power cut.
func (r *Recorder) Sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parallel = false
	err := errors.Join(r.late, r.settle())
	r.late = nil
	if r.dirty {
		err = errors.Join(err, synced(r.writer, r.host, r.trees()...))
		r.dirty = err != nil
		clear(r.coming)
	}
	if r.writer == nil {
		return err
	}
	return errors.Join(err, explain(r.writer.sync()))
}

// trees are directories that programs may have written to.
func (r *Recorder) trees() (all []string) {
	for s := range r.records {
		if s.Kind == host.KindTree {
			all = append(all, s.Name)
		}
	}
	return all
}

// synced syncs the host and, where a journal is kept, notes that.
func synced(w *writer, h *host.Host, paths ...string) error {
	if err := h.Sync(paths...); err != nil || w == nil {
		return err
	}
	return w.write(kindSynced, nil)
}

// after writes what a subject has become. One that cannot be looked at stays open.
func after(w *writer, h *host.Host, of *recorded, hide func(string) string) (*afterBody, error) {
	ctx, cancel := context.WithTimeout(context.Background(), imageTime)
	defer cancel()
	k := &watching{keep: texts{w}, hide: hide}
	i, err := image.Taker{Host: h, Keep: k}.Take(ctx, of.subject)
	if err != nil {
		return nil, nil
	}
	b := &afterBody{Seq: of.seq, After: i, Secret: of.private || k.secret(of.subject, i)}
	for n := range i.Parts {
		i.Parts[n].Lost = "" // to be shown it is not needed
	}
	return b, w.add(kindAfter, b)
}
