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

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Run is a run that may change things.
type Run struct {
	ID   string
	Pair string // key of the pair that converges
	Name string // of that pair, for people
	Over string // key of the pair that ran before
	Now  func() time.Time
	// Skip are directories whose files are nobody's but the agent's.
	Skip []string
	// Note is told what concerns the journal and does not stop the run.
	Note func(format string, args ...any)
}

// Recorder writes a run's changes into the journal. Until the first of them it touches nothing. It is
// the host.Recorder of the host that it is bound to.
type Recorder struct {
	journal Journal
	run     Run
	host    *host.Host

	step     atomic.Pointer[string]
	settling atomic.Bool // after-images are being taken

	// mu is held while after-images are taken, which goes on while the next state looks at the host: who
	// is about to change something waits for that.
	mu      sync.Mutex
	writer  *writer
	records map[host.Subject]*recorded
	dirs    map[string]bool // of the files among them
	ahead   func() []Coming // nil for nobody
	coming  map[string]bool // what is said to come
	open    []*recorded     // whose after-image is not taken
	late    error           // of taking them, still to be told
	dirty   bool            // something changed that a power cut could still take back
	hide    func(string) string
	private map[string]bool // steps whose changes are not shown

	parallel bool
	program  *int // sequence number of the record of a program that runs; nil for none
}

// recorded is a subject that this run has changed.
type recorded struct {
	subject host.Subject
	seq     int
	open    bool
	private bool // what it becomes is not shown
	after   *image.Image
}

// Record makes the recorder of a run.
func (j Journal) Record(run Run) *Recorder {
	r := &Recorder{journal: j, run: run, records: map[host.Subject]*recorded{}, dirs: map[string]bool{}, coming: map[string]bool{}, private: map[string]bool{}, hide: func(text string) string { return text }}
	r.Step("")
	return r
}

// Bind tells the host whose images are taken. It may be told again, of the same machine.
func (r *Recorder) Bind(h *host.Host) {
	r.mu.Lock()
	r.host = h
	r.mu.Unlock()
}

// Step says what is being done from now on: the function and the ID of a state, or the stage of a
// run.
func (r *Recorder) Step(name string) { r.step.Store(&name) }

// Hide tells how texts are shown; one that is shown otherwise than it is holds a secret.
func (r *Recorder) Hide(hide func(string) string) {
	r.mu.Lock()
	r.hide = hide
	r.mu.Unlock()
}

// Private says that what a step changes is not shown, now or later. Among steps that are at work at once it is not known
// which of them makes a change, so none of their changes is shown.
func (r *Recorder) Private(step string) {
	r.mu.Lock()
	r.private[step] = true
	r.mu.Unlock()
}

func (r *Recorder) isPrivate(step string) bool {
	return r.private[step] || r.parallel && len(r.private) > 0
}

// imageTime is how long it may take to look at a subject.
const imageTime = 2 * time.Minute

// Replacing writes down what a subject is.
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
	step := *r.step.Load()
	key := s
	if s.Kind == host.KindCommand {
		key.Name += " " + step // each state's by itself
	}
	if known, ok := r.records[key]; ok {
		known.private = known.private || r.isPrivate(step)
		return explain(r.again(known))
	}
	if s.Kind == host.KindFile && r.inOpenTree(s.Name) {
		return nil // the tree's images have it
	}
	if err := r.begin(); err != nil {
		return explain(err)
	}
	if s.Kind == host.KindTree {
		if err := r.settleBelow(s.Name); err != nil {
			return explain(err)
		}
	}
	change := Change{Step: step, Subject: s}
	if image.CanBePutBack(s.Kind) {
		r.before(&change)
		change.Secret = change.Secret || r.isPrivate(step)
	} else {
		change.Lost = fmt.Sprintf("what a %s does cannot be taken back", s.Kind)
	}
	if err := r.writer.add(kindChange, change); err != nil {
		return explain(err)
	}
	if err := r.matters(change); err != nil {
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

// inOpenTree reports whether a tree that has changed, and whose after-image is still to be taken, has the path.
func (r *Recorder) inOpenTree(name string) bool {
	return slices.ContainsFunc(r.open, func(e *recorded) bool { return e.subject.Kind == host.KindTree && in(e.subject.Name, name) })
}

// settleBelow ends the records of paths that a tree is about to take the place of: what a state left there, as
// when it removed a directory, is what the tree's before-image starts from. Each path then has one history.
func (r *Recorder) settleBelow(dir string) error {
	below := func(e *recorded) bool {
		return (e.subject.Kind == host.KindFile || e.subject.Kind == host.KindTree) && in(dir, e.subject.Name)
	}
	for _, e := range r.open {
		if !below(e) {
			continue
		}
		if err := r.settleOne(e); err != nil {
			return err
		}
		delete(r.records, e.subject)
	}
	r.open = slices.DeleteFunc(r.open, below)
	return nil
}

// in reports whether a path is a directory or lies below it.
func in(dir, name string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// Names reports whether this run has recorded a file of a directory.
func (r *Recorder) Names(dir string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dirs[dir]
}

// again opens a subject that was settled, since what it has become is not what it will be.
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

// before takes the image of what is about to change. What cannot be looked at is no reason to leave
// it as it is; it cannot be put back then.
func (r *Recorder) before(c *Change) {
	ctx, cancel := context.WithTimeout(context.Background(), imageTime)
	defer cancel()
	k := &watching{keep: r.writer, hide: r.hide}
	i, err := image.Taker{Host: r.host, Keep: k}.Take(ctx, c.Subject)
	if err != nil {
		c.Lost = "what was there could not be read: " + err.Error()
		return
	}
	c.Before, c.Secret = &i, k.secret(c.Subject, i)
}

// skips reports whether a subject is none of the journal's business.
func (r *Recorder) skips(s host.Subject) bool {
	if r.host == nil {
		return true
	}
	for _, dir := range r.run.Skip {
		if s.Name == dir || strings.HasPrefix(s.Name, dir+"/") {
			return true
		}
	}
	return false
}

// Ran records a program that may have changed anything, before it starts. Ended is called when it has ended.
func (r *Recorder) Ran(what, name string) error {
	if r.journal.Limit == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.begin(); err != nil {
		return explain(err)
	}
	s := host.Subject{Kind: host.KindCommand, Name: path.Base(name)}
	err := r.writer.add(kindChange, Change{Step: what, Subject: s, Lost: fmt.Sprintf("what a %s does cannot be taken back", s.Kind)})
	seq := r.writer.records
	r.writer.records, r.program = seq+1, &seq
	return explain(errors.Join(err, r.writer.sync()))
}

// Ended records that the program of Ran has ended: what cuts the run short from now on is not that program.
func (r *Recorder) Ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writer == nil || r.program == nil {
		return nil
	}
	err := r.writer.add(kindAfter, afterBody{Seq: *r.program})
	r.program = nil
	return explain(errors.Join(err, r.writer.sync()))
}

// Kept waits until all that was written is safe.
func (r *Recorder) Kept() error {
	r.mu.Lock()
	w := r.writer
	r.mu.Unlock()
	if w == nil {
		return nil
	}
	return explain(w.await())
}

// Close settles what is open and closes the chapter.
func (r *Recorder) Close() error {
	err := r.Sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writer == nil {
		return err
	}
	w := r.writer
	r.program = nil
	r.writer, r.records, r.dirs, r.coming, r.open = nil, map[host.Subject]*recorded{}, map[string]bool{}, map[string]bool{}, nil
	return errors.Join(err, explain(w.close()))
}
