package journal

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Run describes the run whose changes are recorded.
type Run struct {
	ID   string
	Pair ledger.Key // of the pair of releases that converges
	Name string     // of that pair, for messages
	Over ledger.Key // of the pair that ran before; zero for none
	Now  func() time.Time
	// Skip lists directories of the agent itself. Changes in them are not recorded.
	Skip []string
	// Note reports a problem with the journal that does not stop the run.
	Note func(format string, args ...any)
}

// Recorder writes the changes of a run into the journal. It does not touch the journal before the first change. It
// implements host.ChangeRecorder for the host given to Bind.
type Recorder struct {
	journal Journal
	run     Run
	host    *host.Host

	step     atomic.Pointer[string]
	beside   []string    // steps that run in parallel, in the order of their starts; under mu
	guards   int         // guards that run now; under mu
	settling atomic.Bool // a goroutine of Settle is taking after-images

	// mu is held while after-images are taken. Meanwhile the next state may read the host; a change waits for mu.
	mu        sync.Mutex
	writer    *writer
	records   map[host.Subject]*recorded
	dirs      map[string]bool     // directories of the files in records
	plan      func() []Planned    // see SetPlan; nil for none
	planned   map[string]bool     // paths that the journal has as planned
	open      []*recorded         // subjects whose after-image is not taken yet
	settleErr error               // the error of Settle's goroutine, for the next call to return
	dirty     bool                // the host has changes that are not synced to disk
	hide      func(string) string // redacts a text
	private   map[string]bool     // steps whose changes must not be shown

	parallel bool
	program  *int // sequence number of the record of the running program; nil for none
}

// recorded is a subject that this run has changed.
type recorded struct {
	subject host.Subject
	seq     int
	open    bool
	private bool // its after-image must not be shown
	after   *image.Image
}

// Record returns the Recorder of a run.
func (j Journal) Record(run Run) *Recorder {
	r := &Recorder{journal: j, run: run, records: map[host.Subject]*recorded{}, dirs: map[string]bool{},
		planned: map[string]bool{}, private: map[string]bool{}, hide: func(text string) string { return text }}
	r.Step("")
	return r
}

// Bind sets the host whose changes are recorded. A later call may pass another Host of the same machine.
func (r *Recorder) Bind(h *host.Host) {
	r.mu.Lock()
	r.host = h
	r.mu.Unlock()
}

// Step sets the step of the following changes: the function and the ID of a state, or the stage of the run.
func (r *Recorder) Step(name string) { r.step.Store(&name) }

// Hide sets the function that redacts texts. A text contains a secret if the function changes it.
func (r *Recorder) Hide(hide func(string) string) {
	r.mu.Lock()
	r.hide = hide
	r.mu.Unlock()
}

// Private marks a step whose changes must not be shown. While steps run in parallel the recorder cannot attribute a
// change to one of them, so all changes count as private if any step is.
func (r *Recorder) Private(step string) {
	r.mu.Lock()
	r.private[step] = true
	r.mu.Unlock()
}

func (r *Recorder) isPrivate(step string) bool {
	return r.private[step] || r.parallel && len(r.private) > 0
}

// imageTime is the timeout for taking one image.
const imageTime = 2 * time.Minute

// Replacing records the image of a subject before it changes.
func (r *Recorder) Replacing(s host.Subject) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.skips(s) {
		return nil
	}
	r.dirty = r.dirty || image.CanBePutBack(s.Kind)
	if r.journal.Limit == 0 {
		return nil
	}
	step := r.atWork()
	key := s
	if s.Kind == host.KindCommand {
		key.Name += " " + step // each step has its own records of programs
	}
	if known, ok := r.records[key]; ok {
		known.private = known.private || r.isPrivate(step)
		return explain(r.again(known))
	}
	if s.Kind == host.KindFile && r.inOpenTree(s.Name) {
		return nil // the images of the tree contain the file
	}
	if err := r.begin(); err != nil {
		return explain(err)
	}
	if s.Kind == host.KindTree {
		if err := r.settleInside(s.Name); err != nil {
			return explain(err)
		}
	}
	change := Change{Step: step, Subject: s, Shown: namesOf(s, image.Image{}, r.hide)}
	if image.CanBePutBack(s.Kind) {
		r.before(&change)
		change.Secret = change.Secret || r.isPrivate(step)
	} else {
		change.Lost = fmt.Sprintf("what a %s does cannot be undone", s.Kind)
	}
	if err := r.writer.add(kindChange, change); err != nil {
		return explain(err)
	}
	if err := r.persist(change); err != nil {
		return explain(err)
	}
	entry := &recorded{subject: s, seq: r.writer.records, private: change.Secret}
	r.writer.records++
	r.records[key] = entry
	if s.Kind == host.KindFile {
		r.dirs[path.Dir(s.Name)] = true
	}
	if change.Before != nil {
		entry.open = true
		r.open = append(r.open, entry)
	}
	return nil
}

// inOpenTree reports whether name is in a changed tree whose after-image is not taken yet.
func (r *Recorder) inOpenTree(name string) bool {
	return slices.ContainsFunc(r.open, func(e *recorded) bool {
		return e.subject.Kind == host.KindTree && in(e.subject.Name, name)
	})
}

// settleInside takes the after-images of the open subjects in dir before the record of tree dir begins, and forgets
// them. The before-image of the tree then continues from these after-images, so that each path has one history.
func (r *Recorder) settleInside(dir string) error {
	inside := func(e *recorded) bool {
		return (e.subject.Kind == host.KindFile || e.subject.Kind == host.KindTree) && in(dir, e.subject.Name)
	}
	for _, e := range r.open {
		if !inside(e) {
			continue
		}
		if err := r.settleOne(e); err != nil {
			return err
		}
		delete(r.records, e.subject)
	}
	r.open = slices.DeleteFunc(r.open, inside)
	return nil
}

// in reports whether name is dir or a path in it.
func in(dir, name string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// ChangedIn reports whether this run has recorded a change of a file in directory dir.
func (r *Recorder) ChangedIn(dir string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dirs[dir]
}

// again reopens a settled subject that is about to change again: its after-image is no longer valid.
func (r *Recorder) again(entry *recorded) error {
	if entry.open || entry.after == nil {
		return nil
	}
	entry.open, entry.after = true, nil
	r.open = append(r.open, entry)
	err := r.writer.add(kindAgain, againBody{entry.seq})
	r.writer.need()
	return err
}

// before takes the before-image of a change. If that fails, it sets c.Lost: the subject may change, but the change
// cannot be undone.
func (r *Recorder) before(c *Change) {
	ctx, cancel := context.WithTimeout(context.Background(), imageTime)
	defer cancel()
	k := &secretKeeper{keep: r.writer, hide: r.hide}
	i, err := image.Taker{Host: r.host, Keep: k}.Take(ctx, c.Subject)
	if err != nil {
		c.Lost = r.hide("what was there could not be read: " + err.Error())
		return
	}
	c.Before, c.Secret = &i, k.secret(c.Subject, i) || r.inPrivateDirectory(c.Subject)
	c.addShown(namesOf(c.Subject, i, r.hide))
}

// inPrivateDirectory reports whether a file or tree is private because of a directory on the way to it.
func (r *Recorder) inPrivateDirectory(s host.Subject) bool {
	return (s.Kind == host.KindFile || s.Kind == host.KindTree) && host.InPrivateDirectory(r.host, s.Name)
}

// skips reports whether changes of a subject are not recorded.
func (r *Recorder) skips(s host.Subject) bool {
	return r.host == nil || slices.ContainsFunc(r.run.Skip, func(dir string) bool {
		return s.Name == dir || strings.HasPrefix(s.Name, dir+"/")
	}) || (s.Kind == host.KindFile || s.Kind == host.KindTree) && OfGuests(r.host, s.Name)
}

// OfGuests reports whether a path of a node belongs to its guests: it is not recorded, and no rollback changes it.
func OfGuests(h *host.Host, name string) bool {
	if cloud.Keeps(name, cloud.Disks) {
		return true
	}
	disks, err := h.Unattributed().Files.Resolve(cloud.Disks)
	return err == nil && cloud.Keeps(name, disks)
}

// BeforeProgram records a program that is about to start, and that may change anything. The caller calls AfterProgram
// after the program has ended.
func (r *Recorder) BeforeProgram(what, name string) error {
	if r.journal.Limit == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.begin(); err != nil {
		return explain(err)
	}
	s := host.Subject{Kind: host.KindCommand, Name: path.Base(name)}
	err := r.writer.add(kindChange, Change{Step: what, Subject: s,
		Lost: fmt.Sprintf("what a %s does cannot be undone", s.Kind)})
	seq := r.writer.records
	r.writer.records, r.program = seq+1, &seq
	return explain(errors.Join(err, r.writer.sync()))
}

// AfterProgram records that the program of BeforeProgram has ended, so that a later interruption of the run is not
// attributed to it.
func (r *Recorder) AfterProgram() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writer == nil || r.program == nil {
		return nil
	}
	err := r.writer.add(kindAfter, afterBody{Seq: *r.program})
	r.program = nil
	return explain(errors.Join(err, r.writer.sync()))
}

// Kept implements host.ChangeRecorder: it waits until the records of the announced changes are synced to disk.
func (r *Recorder) Kept() error {
	r.mu.Lock()
	w := r.writer
	r.mu.Unlock()
	if w == nil {
		return nil
	}
	return explain(w.waitForDisk())
}

// Close calls Sync and closes the chapter.
func (r *Recorder) Close() error {
	err := r.Sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writer == nil {
		return err
	}
	w := r.writer
	r.program = nil
	r.writer, r.records, r.dirs, r.planned, r.open = nil, map[host.Subject]*recorded{}, map[string]bool{},
		map[string]bool{}, nil
	return errors.Join(err, explain(w.close()))
}
