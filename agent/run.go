package agent

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/outgoing"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/serving"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/agent/undo/recording"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// run is one pass over a host, from lock to report.
type run struct {
	*Agent
	id     string
	test   bool
	ledger *ledger.Ledger
	record *report.Recorder
	report *report.Report

	endedMu  sync.Mutex
	readable *outgoing.Readable

	endedIn string // the state that was ended since the run was asked to end; under endedMu

	identity grains.Identity
	store    store.Store   // with its mirrors, from connect on
	client   *trust.Client // of the store; nil where the run has none to ask
	only     procedure.Only
	leaves   *ledger.Pair // what somebody goes back from
	trouble  error        // what the store did not say of one project, while it did of the other
	troubled []string     // these projects
	doubts   []error      // why the run brings nothing new, though it goes on with what is deployed
	acted    bool         // the run changed, or tried to change, what is deployed
	ownStop  atomic.Bool  // a step asked for the end of this very run
	cutStep  string       // where the deploy was cut short that this run takes up, "" if that is not known
	cuts     int          // how often in a row there
	kept     []string     // directories in archives that get the report beside them

	held  *records.Exclusive // the lock of this run; nil for a trial, whose lock is lent
	files self.Snapshot      // the agent's own files, as they were last known to work
	units self.Units         // the agent's own units, as they were before a deploy
	took  time.Duration      // the longest converge of this run
	flips bool               // states run that come before the links move
	left  *ledger.Pair       // what failed and is rolled back

	remoded  map[string]bool    // releases of what is deployed whose modes were put right, by name
	finished *ledger.Unfinished // the way back of an earlier run that this run has finished; nil for none

	undo        *recording.Run // records what converging replaces, and takes it back
	serving     *serving.Run   // puts pairs into service
	project     *project.Run   // the service as a project: registry, procedures, configuration
	failedTrial *failedTrial   // the last trial of the agent, if it failed

	rehearsed string // the temporary directory of trust of a dry run; "" for none

	decrypted map[string]bool // pairs whose secrets are known, by their keys

	replacedMu sync.Mutex
	replaced   map[string]bool  // releases whose directories this run has replaced
	unlisted   map[string]error // why releases that have lost their lists were not fetched again
}

// pass holds the lock, records what body does, and turns how it ended into a report.
func (a *Agent) pass(ctx context.Context, command string, test bool, body func(*run) error) (*report.Report, error) {
	if err := a.CheckAbove(a.Layout.State()); err != nil {
		return nil, err
	}
	held, err := a.Lock(ctx, command)
	if other := new(lock.Held); errors.As(err, &other) && a.Within == "" {
		return nil, a.NoteRefusal(ctx, other, err)
	}
	if err != nil {
		return nil, err
	}
	a.ForgetRefusals()
	a, after := a.puttingOff(ctx)
	defer after()
	defer func() { _ = held.Release() }()
	refused := a.CheckAbove(a.Layout.Projects())
	if unfit := a.CheckPrograms(); unfit != nil {
		a.Config.Notify.MailTo, a.Config.Notify.Command = nil, nil // no program is run to say so
		refused = errors.Join(refused, unfit)
	}
	var taken []string
	if refused == nil {
		taken, err = a.ReclaimShared(nil, test)
	}
	if err != nil {
		return nil, site.ExplainDisk(err)
	}
	book, lost, err := a.Recall(test || refused != nil)
	if err != nil {
		return nil, site.ExplainDisk(err)
	}
	r, err := a.begin(command, test, book)
	if err != nil {
		return nil, err
	}
	r.held = held
	defer held.Watch(func() {
		r.record.Note("%s was removed while this run held its lock; it was made and locked again", r.Layout.Inside(r.Layout.Lock()))
	})()
	r.watchSelf()
	if refused == nil {
		var more []string
		more, err = a.ReclaimShared(records.ProjectsIn(book), test)
		taken = append(taken, more...)
	}
	slices.Sort(taken) // a dry run finds what is not a project's twice
	for _, text := range slices.Concat(held.Displaced, lost, slices.Compact(taken)) {
		r.record.Note("%s", text)
	}
	if refused = errors.Join(refused, site.ExplainDisk(err)); refused != nil {
		r.finish(ctx, refused)
		return r.report, r.redacted(refused)
	}
	if err := r.sweep(ctx); err != nil {
		r.record.Note("what earlier runs left was not all removed: %v", err)
	}
	if !test {
		err = errors.Join(r.repairLinks(records.ProjectsIn(book)), r.repairData())
	}
	defer r.freeWaiters(ctx)()
	defer r.freeAwaited(ctx)()
	if err == nil {
		err = r.doubtConfiguration()
	}
	if err == nil {
		err = body(r)
	}
	if err == nil && r.remember() {
		err = r.save()
	}
	err = r.keepTrust(err)
	if r.rehearsed != "" {
		err = errors.Join(err, durable.RemoveTemp(ctx, r.rehearsed))
	}
	r.keepConfiguration()
	err = r.keepSelf(ctx, err)
	err = site.ExplainDisk(failure.Unexecuted(r.Layout, errors.Join(err, r.undo.Close())))
	r.finish(ctx, err)
	return r.report, r.redacted(errors.Join(err, r.undo.Close()))
}

// remember writes into the ledger who the host is and where its links lead, and reports whether that was not there before.
func (r *run) remember() (changed bool) {
	links := r.serving.RememberLinks()
	return r.rememberWho() || links
}

// begin makes a run and its report.
func (a *Agent) begin(command string, test bool, book *ledger.Ledger) (*run, error) {
	hostname, err := a.TreeHostname()
	if err != nil {
		return nil, err
	}
	a.Lists = &fetch.Lists{} // of this run
	started := a.Time()
	rep := &report.Report{ID: report.NewID(started), Command: command, Test: test, Host: hostname, Started: started.UTC(), From: book.Good, OtherRoot: a.Layout.Relocated()}
	return a.newRun(test, book, rep, report.Record(rep, a.Secrets(), a.Sinks...)), nil
}

// newRun makes a run with its rooms.
func (a *Agent) newRun(test bool, book *ledger.Ledger, rep *report.Report, record *report.Recorder) *run {
	r := &run{
		Agent: a, id: rep.ID, test: test, ledger: book, report: rep, record: record,
		readable: outgoing.NewReadable(a.Layout, rep, record),
	}
	r.undo = &recording.Run{Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record}
	r.serving = &serving.Run{
		Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record, Began: a.UnitClock(), ProbeAnyRoot: a.ProbeAnyRoot,
		Save: r.save, Ending: r.ending, Intact: r.intact, HookEnv: r.hookEnv, Replaced: r.wasReplaced,
		AsksHealth: func() bool { return r.only.Has(procedure.Health) },
	}
	r.project = &project.Run{
		Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record, Identity: &r.identity, Only: &r.only,
		Intact: r.intact, HookEnv: r.hookEnv, Hooks: r.hooks, Request: r.request, Observing: r.observing, Synced: r.undo.Synced,
		RecordProgram: r.undo.BeforeProgram, Kept: func(dir string) { r.kept = append(r.kept, dir) },
	}
	return r
}

// redacted is an error without secrets in its text; its exit code stays.
func (r *run) redacted(err error) error {
	if err == nil {
		return nil
	}
	return exit.WithCode(exit.Code(err), r.Redactor.Error(err))
}

// sweep removes what a killed run left behind; under the lock nobody else is writing.
func (r *run) sweep(ctx context.Context) error {
	state := r.Layout.State()
	dirs := []string{state, filepath.Join(state, "projects"), r.Layout.Incoming(), r.Layout.Reports(), r.Layout.Trust(), filepath.Join(r.Layout.Trust(), "projects"),
		r.Layout.Path("/srv"), r.Layout.Path(project.StatesDir), r.Layout.Path(project.PillarsDir)}
	if file := r.Config.Metrics; file != "" {
		dirs = append(dirs, r.Layout.Path(filepath.Dir(file)))
	}
	projects, err := r.ProjectDirs()
	errs := []error{err}
	dirs = append(dirs, r.Layout.Projects())
	for _, dir := range projects {
		p := r.LayoutOf(filepath.Base(dir))
		archives, err := walk.Glob(filepath.Join(p.Archives(), "*"))
		dirs = append(append(dirs, r.Layout.Trees(p.Name), p.Dir, p.Releases(), p.Archives()), archives...)
		errs = append(errs, err, r.adoptFailed(p))
	}
	for _, dir := range dirs {
		errs = append(errs, durable.Sweep(ctx, dir))
	}
	return errors.Join(errs...)
}

// finish completes the report, keeps it, and tells about it. A dry run leaves no report behind and
// tells nobody else, since it did nothing.
func (r *run) finish(ctx context.Context, err error) {
	r.serving.RepeatUnserved(ctx)
	r.notePassed()
	r.record.Complete(func(rep *report.Report) {
		rep.Ended = r.Time().UTC()
		rep.Service, rep.Instance = r.identity.Service, r.identity.Instance
		rep.Agent, rep.Form = r.Version, trust.NewestForm
		rep.Exit = exit.Code(err)
		rep.Outcome = outcome(ctx, rep.Exit)
		if rep.Command == "rollback" && !r.acted && (rep.Exit == exit.Usage || rep.Exit == exit.Refused) {
			rep.Outcome = report.Refused
		}
		rep.Left, rep.BaseAlone, rep.Channels, rep.Remembered = r.ledger.Good, r.ledger.Alone, r.ledger.Channels, &r.ledger.Host
		rep.Quarantined, rep.Proves = r.inQuarantine(), true
		rep.Expires, rep.Expiring = r.expires()
		if r.ledger.Proven.Proves(r.ledger.Good) {
			rep.Proven = r.ledger.Proven
		}
		if err != nil {
			rep.Error, rep.Hint = strings.TrimSpace(err.Error()), strings.Join(diag.HintsOf(err), "\n")
		}
	})
	if !r.test {
		// Kept before anybody is told: telling takes time in which the power can go.
		r.keepReport()
		notes := len(r.report.Notes)
		if r.tell(ctx); len(r.report.Notes) > notes {
			r.keepReport()
		}
	}
	r.record.End()
}

func (r *run) keepReport() {
	if err := r.Reports().Save(r.report, r.Config.KeepReports); err != nil {
		r.record.Note("the report was not kept: %v", err)
	}
	for _, dir := range r.kept {
		if err := (report.Archive{Dir: dir}).Beside(r.report); err != nil {
			r.record.Note("%v", err)
		}
	}
}

func outcome(ctx context.Context, code int) report.Outcome {
	switch code {
	case exit.OK:
		return report.Converged
	case exit.RolledBack:
		return report.RolledBack
	case exit.RollbackFailed:
		return report.Stuck
	case exit.Interrupted:
		return report.Interrupted
	}
	if stopped(ctx) {
		return report.Interrupted
	}
	return report.Failed
}

// save writes the ledger. What failed is redacted, as in the report.
func (r *run) save() error {
	if r.test {
		return nil
	}
	for i := range r.ledger.Bad {
		r.ledger.Bad[i].Reason = r.record.Show(r.ledger.Bad[i].Reason)
	}
	uncopied, err := r.SaveLedger(r.ledger)
	if uncopied != "" && !slices.Contains(r.report.Notes, uncopied) {
		r.record.Note("%s", uncopied)
	}
	return err
}
