package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// undoing keeps what a run replaces while it converges one pair.
type undoing struct {
	*journal.Recorder
	pair ledger.Pair
	host *host.Host
}

// recorder gives the recorder of a pair. Nothing is written before something changes.
func (r *run) recorder(pair ledger.Pair) (*journal.Recorder, error) {
	if r.undo != nil && r.undo.pair.Same(pair) {
		return r.undo.Recorder, nil
	}
	if err := r.closeJournal(); err != nil {
		return nil, err
	}
	over := r.ledger.Runs()
	if over != nil && over.Same(pair) {
		over = cmp.Or(r.over, r.ledger.Previous)
	}
	run := journal.Run{ID: r.id, Pair: pair.Key(), Name: pair.String(), Now: r.Time, Note: r.record.Note, Skip: []string{r.Layout.Inside(r.Layout.State())}}
	if over != nil {
		run.Over = over.Key()
	}
	r.undo = &undoing{Recorder: r.Journal().Record(run), pair: pair}
	return r.undo.Recorder, nil
}

// recording is the host as states see it that converge a pair: whatever they replace is kept.
func (r *run) recording(pair ledger.Pair) (*host.Host, error) {
	recorder, err := r.recorder(pair)
	if err != nil {
		return nil, err
	}
	h, err := r.StateHostWith(recorder, r.temporaryBeside(recorder))
	if err == nil {
		recorder.Bind(h)
		r.undo.host = h
	}
	return h, err
}

// closeJournal ends what was recorded so far.
func (r *run) closeJournal() error {
	if r.undo == nil {
		return nil
	}
	u := r.undo
	r.undo = nil
	return u.Close()
}

// synced returns when a power cut can take nothing of what was converged so far.
func (r *run) synced() error {
	if r.undo == nil {
		return nil
	}
	return r.undo.Sync()
}

// ran records a program of the release, which may change anything, while it runs. The caller calls ended afterwards.
func (r *run) ran(what, name string, pair ledger.Pair) (ended func(), err error) {
	if _, err := r.recording(pair); err != nil {
		return nil, err
	}
	recorder := r.undo.Recorder
	return func() {
		if err := recorder.AfterProgram(); err != nil {
			r.record.Note("%v", err)
		}
	}, recorder.BeforeProgram(what, name)
}

// ranEngine records an engine that is a program, since it changes the host behind this one's back.
func (r *run) ranEngine() error {
	if r.undo == nil || r.Engine != nil || r.Config.Engine == "native" || r.test {
		return nil
	}
	// One word of it is enough, since it would be said at each tick of the timer.
	last, err := r.Journal().Last()
	if err == nil && last != nil && last.Pair == r.undo.pair.Key() && slices.ContainsFunc(last.Live(), func(c *journal.Record) bool { return c.Step == "engine" }) {
		return nil
	}
	return r.undo.BeforeProgram("engine", r.Config.Engine)
}

// observing tells the journal which state is at work.
func (r *run) observing(o exec.Observer) exec.Observer {
	o = private{Observer: o, of: r}
	if r.test && r.Config.UndoLimit > 0 {
		if h, err := r.StateHost(); err == nil { // converging reports why there is none
			o = tooLarge{Observer: o, of: r, host: h}
		}
	}
	if r.undo == nil || r.test {
		return o
	}
	return &observer{Observer: o, recorder: r.undo.Recorder, note: r.record.Note, host: r.undo.host}
}

type observer struct {
	exec.Observer
	recorder *journal.Recorder
	note     func(string, ...any)
	redactor *redact.Redactor // nil for none
	host     *host.Host

	mu    sync.Mutex // parallel states ask what comes
	steps []*compile.Step
	at    map[*compile.Step]int
	next  int // of the steps, the first that has not started
	given int // of the steps, the first that the recorder was not told of
}

func (o *observer) Redacting(r *redact.Redactor) {
	o.redactor = r
	o.recorder.Hide(r.Text)
}

func (o *observer) StepStarted(s *compile.Step) {
	if value.Truth(s.Chunk.Value("parallel")) {
		o.recorder.Parallel()
	}
	o.pass(s)
	if shows := s.Chunk.Value("show_changes"); shows != nil && !value.Truth(shows) {
		o.recorder.Private(o.named(s))
	}
	o.recorder.Step(o.named(s))
	o.Observer.StepStarted(s)
}

// named is what a step is called in the journal.
func (o *observer) named(s *compile.Step) string {
	return o.redactor.Text(s.Function() + " " + s.ID()) // a later run, which shows it, does not know the secrets
}

func (o *observer) StepDone(r *exec.Result) {
	if err := o.recorder.Settle(); err != nil {
		o.note("%v", err)
	}
	o.Observer.StepDone(r)
}

// scope is how far a run that was cut short was to take back what converging changed.
func (r *run) scope(cut *ledger.Running) undo.Scope {
	s := undo.Scope{From: cut.Pair.Key(), Run: cut.UndoTo, Sequence: r.RunSequence()}
	if runs := r.ledger.Runs(); runs != nil {
		s.To = runs.Key()
	}
	return s
}

// takeBack takes back what converging changed, as far as a scope says.
func (r *run) takeBack(ctx context.Context, s undo.Scope) error {
	if err := r.closeJournal(); err != nil {
		return err
	}
	plan, h, err := r.planBack(ctx, s)
	if err != nil || plan.Done() {
		return err
	}
	var did undo.Summary
	err = r.record.Stage("undo", "", func() error {
		did, err = undo.Restore(ctx, h, r.Journal(), r.id, plan)
		return errors.Join(err, incomplete(did))
	})
	r.tellUndone(did)
	return err
}

// planBack looks for what there is to take back.
func (r *run) planBack(ctx context.Context, s undo.Scope) (*undo.Plan, *host.Host, error) {
	h, err := r.StateHost()
	if err != nil {
		return nil, nil, err
	}
	j := r.Journal()
	chapters, readErr := j.Chapters()
	if len(chapters) > 0 && !r.test {
		image.Finish(ctx, h)
		if err := journal.Settle(j, chapters[len(chapters)-1], h); err != nil {
			return nil, nil, err
		}
	}
	records, short := undo.Select(chapters, s)
	if readErr != nil && (short || len(chapters) == 0) {
		return nil, nil, readErr
	}
	if short {
		r.record.Note("the journal does not reach all the way back; what is older stays as it is")
	}
	plan, err := undo.NewPlan(ctx, h, chapters, records)
	return plan, h, err
}

// finishPackages ends what a cut interrupted, for which the release that is taken up again is not to blame.
func (r *run) finishPackages(ctx context.Context) error {
	h, err := r.StateHost()
	if err == nil {
		image.Finish(ctx, h)
	}
	return err
}

// errIncomplete is what a restore in which something failed is about.
var errIncomplete = errors.New("not everything could be taken back")

// incomplete is the error of a restore in which something failed.
func incomplete(did undo.Summary) error {
	if len(did.Failed) == 0 {
		return nil
	}
	var all []string
	for _, f := range did.Failed {
		all = append(all, f.String())
	}
	return diag.WithHint(fmt.Errorf("%w: %s", errIncomplete, strings.Join(all, "; ")), "mend what they name, and run: corpus-agent rollback --converge")
}

// tellUndone reports what a restore did. A unit that follows the links is restarted after it: that it crashed
// or was restarted since is nothing that is left.
func (r *run) tellUndone(did undo.Summary) {
	if serving := r.ledger.Serving; serving != nil {
		did.Left = slices.DeleteFunc(did.Left, func(l undo.Left) bool {
			unit, isUnit := strings.CutPrefix(l.Subject, "unit ")
			return isUnit && l.Changed && slices.Contains(serving.Units, unit)
		})
	}
	r.record.Complete(func(rep *report.Report) { rep.Undo = &did })
	r.record.Note("taken back: %d changes; left as they are: %d; restarted: %d", len(did.Restored), len(did.Left), len(did.Restarted))
	for _, l := range did.Left {
		r.record.Note("left: %s", l)
	}
}
