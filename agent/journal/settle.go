package journal

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Parallel marks the start of a step that runs beside others. The recorder takes after-images only when all of them
// have ended, which is when the caller calls Sync.
func (r *Recorder) Parallel(step string) {
	r.mu.Lock()
	r.parallel = true
	r.beside = append(r.beside, step)
	r.mu.Unlock()
}

// Ended marks the end of a step that ran in parallel.
func (r *Recorder) Ended(step string) {
	r.mu.Lock()
	if i := slices.Index(r.beside, step); i >= 0 {
		r.beside = slices.Delete(r.beside, i, i+1)
	}
	r.mu.Unlock()
}

// or joins the names of steps that run at the same time.
const or = " or "

// atWork returns the names of all steps that may be changing the host.
func (r *Recorder) atWork() string {
	last := *r.step.Load()
	if slices.Contains(r.beside, last) {
		return strings.Join(r.beside, or)
	}
	return strings.Join(append(slices.Clone(r.beside), last), or)
}

// Same reports whether two interrupted steps may be the same one: each may be the names of several that ran in
// parallel.
func Same(a, b string) bool {
	all := strings.Split(a, or)
	return slices.ContainsFunc(strings.Split(b, or), func(step string) bool { return slices.Contains(all, step) })
}

// Settle takes and writes the after-images of the changed subjects in the background. It returns the error of an
// earlier call.
func (r *Recorder) Settle() error {
	if r.settling.Load() {
		return nil // nothing has changed since the earlier call: a change would have waited for it
	}
	r.mu.Lock()
	err := r.settleErr
	r.settleErr = nil
	if r.parallel || len(r.open) == 0 {
		r.mu.Unlock()
		return err
	}
	r.settling.Store(true)
	go func() {
		r.settleErr = r.settle()
		r.settling.Store(false)
		r.mu.Unlock()
	}()
	return err
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
	names := func(i image.Image) Names { return namesOf(entry.subject, i, r.hide) }
	b, err := after(r.writer, r.host, entry, r.hide, names)
	if b != nil && err == nil {
		entry.after = &b.After
	}
	entry.open = false
	return err
}

// Sync settles the open subjects, and syncs the host's filesystems and the journal to disk.
func (r *Recorder) Sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parallel = false
	err := errors.Join(r.settleErr, r.settle())
	r.settleErr = nil
	if r.dirty {
		err = errors.Join(err, synced(r.writer, r.host, r.trees()...))
		r.dirty = err != nil
		clear(r.planned)
	}
	if r.writer == nil {
		return err
	}
	return errors.Join(err, explain(r.writer.sync()))
}

// trees returns the directories of recorded trees, in which programs may have written files.
func (r *Recorder) trees() (all []string) {
	for s := range r.records {
		if s.Kind == host.KindTree {
			all = append(all, s.Name)
		}
	}
	return all
}

// synced syncs the filesystems of paths on the host, and records that if w is not nil.
func synced(w *writer, h *host.Host, paths ...string) error {
	if err := h.Sync(paths...); err != nil || w == nil {
		return err
	}
	return w.write(kindSynced, nil)
}

// after takes and writes the after-image of a subject. It returns nil, and no error, if the image cannot be taken. hide
// redacts a text, and names returns the redacted forms of the names in the image.
func after(w *writer, h *host.Host, of *recorded, hide func(string) string, names func(image.Image) Names) (
	*afterBody, error) {
	ctx, cancel := context.WithTimeout(context.Background(), imageTime)
	defer cancel()
	k := &secretKeeper{keep: texts{w}, hide: hide}
	i, err := image.Taker{Host: h.Unattributed(), Keep: k}.Take(ctx, of.subject)
	if err != nil {
		return nil, nil
	}
	b := &afterBody{Seq: of.seq, After: i, Secret: of.private || k.secret(of.subject, i), Shown: names(i)}
	for n := range i.Parts {
		i.Parts[n].Lost = "" // an after-image is shown and never restored
	}
	return b, w.add(kindAfter, b)
}
