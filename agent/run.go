package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/corpus-agent/corpus-agent/agent/balance"
	"github.com/corpus-agent/corpus-agent/agent/connection"
	"github.com/corpus-agent/corpus-agent/agent/delivery"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/fault"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/linking"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/outgoing"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/quarantine"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/releases"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/retention"
	"github.com/corpus-agent/corpus-agent/agent/selftest"
	"github.com/corpus-agent/corpus-agent/agent/serving"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/agent/topfiles"
	"github.com/corpus-agent/corpus-agent/agent/turns"
	"github.com/corpus-agent/corpus-agent/agent/undo/recording"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// run is one run on a host, from lock to report.
type run struct {
	*Agent
	id     string
	test   bool
	ledger *ledger.Ledger
	record *report.Builder
	report *report.Report

	endedMu sync.Mutex

	endedIn string // the state that was ended since the run was asked to end; under endedMu

	identity        grains.Identity
	only            procedure.Only
	leaves          *ledger.Pair       // the pair that a rollback leaves
	unresolvedErr   error              // the error for a project whose release the store did not provide
	unresolved      []string           // the projects whose releases the store did not provide
	withdrawnNames  []ledger.Withdrawn // withdrawn releases that channels name, and that the host does not have
	blockers        []error            // why the run deploys nothing new, and continues with the deployed releases
	acted           bool               // the run changed, or tried to change, what is deployed
	ownStop         atomic.Bool        // a step has ended this run
	interruptedStep string             // where the deploy was interrupted that this run resumes; "" if that is not known
	cuts            int                // how often in a row it was interrupted there

	held *records.Exclusive // the lock of this run; nil for a trial, whose lock is lent

	guard       *linking.Guard // of the links, while states run; nil for none
	movedBy     error          // the error of the state that changed what only deploys move
	beforeLinks bool           // states run now, before the links move
	left        *ledger.Pair   // the pair that is rolled back
	excused     error          // failures of states that may fail, in the last converge; nil for none

	finished *ledger.Unfinished // the rollback of an earlier run that this run has finished; nil for none

	connection *connection.Run // the store, under the root of trust
	releases   *releases.Run   // the directories of releases
	topFiles   *topfiles.Run   // what top files select
	linking    *linking.Run    // moves links
	quarantine *quarantine.Run // releases that are not deployed again
	fault      *fault.Run      // why a deploy failed
	retention  *retention.Run  // removes and archives releases
	selfTest   *selftest.Run   // tries the agent that starts next
	undo       *recording.Run  // records what converging replaces, and takes it back
	serving    *serving.Run    // puts pairs into service
	balance    *balance.Run    // leaves and enters load balancers
	turns      *turns.Run      // the turn of this host in rollouts
	delivery   *delivery.Run   // hands the report to the store, to metrics and to notifications
	project    *project.Run    // the service as a project: registry, procedures, configuration

	decrypted []ledger.Pair // pairs whose secrets are known

}

// Converge converges the deployed releases. It never contacts the store.
func (a *Agent) Converge(ctx context.Context, test bool) (*report.Report, error) {
	if a.LockDescriptor != 0 && test {
		return a.trial(ctx)
	}
	return a.pass(ctx, "converge", test, func(r *run) error {
		if r.ledger.Runs() == nil {
			return inspect.ErrNothingDeployed()
		}
		if r.ledger.Good == nil {
			r.record.Note("nothing of the service was deployed yet; %s converges alone", r.ledger.Alone)
		}
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		if err := r.settleInterrupted(ctx); err != nil {
			return r.baseWithout(ctx, err)
		}
		return r.serving.StillServes(ctx, r.orBlocker(r.convergeGood(ctx)))
	})
}

// pass performs one run under the host's lock: it prepares the host, calls body, and reports the result.
func (a *Agent) pass(ctx context.Context, command string, test bool, body func(*run) error) (*report.Report, error) {
	held, err := a.acquire(ctx, command)
	if err != nil {
		return nil, a.unbegun(ctx, test, err)
	}
	a, after := a.deferUnitActions(ctx)
	defer after()
	defer func() { _ = held.Release() }()
	refused := a.checkHost()
	book, repaired, err := a.readHost(test, refused)
	if err != nil {
		return nil, a.unbegun(ctx, test, site.ExplainDisk(err))
	}
	r, err := a.begin(command, test, book)
	if err != nil {
		return nil, a.unbegun(ctx, test, err)
	}
	r.held = held
	defer held.Watch(r.noteLostLock)()
	r.selfTest.Watch()
	if refused = errors.Join(refused, r.reclaimProjects(refused, repaired)); refused != nil {
		r.finish(ctx, refused)
		return r.report, r.redacted(refused)
	}
	r.noteDropped()
	err = r.removeLeftovers(ctx)
	defer r.freeWaiters(ctx)()
	defer r.freeAwaited(ctx)()
	if err == nil {
		err = r.checkConfiguration()
	}
	if err == nil {
		err = body(r)
	}
	err = r.conclude(ctx, err)
	r.finish(ctx, err)
	return r.report, r.redacted(errors.Join(err, r.undo.Close()))
}

// acquire takes the host's lock. If another run holds it, the refusal is counted.
func (a *Agent) acquire(ctx context.Context, command string) (*records.Exclusive, error) {
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
	return held, nil
}

// checkHost returns an error if there is no place for releases on this host, or if another user can replace what root
// reads or runs.
func (a *Agent) checkHost() error {
	refused := errors.Join(a.CheckPlace(a.Layout.Projects()), a.CheckAbove(a.Layout.Projects()))
	if unfit := a.CheckPrograms(); unfit != nil {
		a.Config.Notify.MailTo, a.Config.Notify.Command = nil, nil // no program runs to notify people
		refused = errors.Join(refused, unfit)
	}
	return refused
}

// repaired has the notes about repairs that a run made before it had a report.
type repaired struct{ shared, ledger []string }

// readHost reads the ledger, after the directories and links of the agent were given back to root. It writes nothing in
// a dry run, nor on a host that is refused.
func (a *Agent) readHost(test bool, refused error) (book *ledger.Ledger, done repaired, err error) {
	if refused == nil {
		if done.shared, err = a.ReclaimShared(nil, test); err != nil {
			return nil, done, err
		}
	}
	book, done.ledger, err = a.Recall(test || refused != nil)
	return book, done, err
}

// noteLostLock notes that the file of the lock was removed during the run.
func (r *run) noteLostLock() {
	r.record.Note("%s was removed while this run held its lock; it was created and locked again",
		r.Layout.Inside(r.Layout.Lock()))
}

// noteDropped notes that the run before was a rollback that was interrupted and that this run does not do.
func (r *run) noteDropped() {
	left, ok := r.held.Left()
	if !ok || r.report.Command == "rollback" {
		return
	}
	text, err := r.Dropped(left, r.ledger)
	if err != nil {
		text = fmt.Sprintf("whether the %s before this run ended is not known: %v", left.Command, err)
	}
	if text != "" {
		r.record.Note("%s", text)
	}
}

// reclaimProjects gives the directories and links of the host's projects back to root, and notes all repairs so far.
func (r *run) reclaimProjects(refused error, done repaired) (err error) {
	if refused == nil {
		var more []string
		more, err = r.ReclaimShared(records.ProjectsIn(r.ledger), r.test)
		done.shared = append(done.shared, more...)
	}
	slices.Sort(done.shared) // a dry run finds those outside the projects twice
	for _, text := range slices.Concat(r.held.Displaced, done.ledger, slices.Compact(done.shared)) {
		r.record.Note("%s", text)
	}
	return site.ExplainDisk(err)
}

// removeLeftovers removes temporary files of killed runs, and repairs links and data directories of projects.
func (r *run) removeLeftovers(ctx context.Context) error {
	if err := r.retention.Sweep(ctx); err != nil {
		r.record.Note("what earlier runs left was not all removed: %v", err)
	}
	if r.test {
		return nil
	}
	return errors.Join(r.linking.SetAside(records.ProjectsIn(r.ledger)), r.releases.RepairData())
}

// conclude writes what later runs need to the disk, and adds errors of that to the error of the run.
func (r *run) conclude(ctx context.Context, err error) error {
	out := r.balance.Enter(ctx, err) // before another host of the cluster takes its turn
	r.endTurns(ctx, err)
	err = withAlso(err, out)
	if err == nil && r.remember() {
		err = r.save()
	}
	err = r.connection.RestoreRoot(err)
	err = errors.Join(err, r.connection.Close(ctx))
	r.keepConfiguration()
	err = r.selfTest.Keep(ctx, err)
	err = site.ExplainDisk(failure.Unexecuted(r.Layout, errors.Join(err, r.undo.Close())))
	if err == nil {
		return r.excuse()
	}
	return err
}

// excuse returns the error of a run in which only states failed that may fail. What it deployed stays deployed, also in
// rollouts: such a failure is none of the release.
func (r *run) excuse() error {
	if r.excused == nil {
		return nil
	}
	r.record.Complete(func(rep *report.Report) { rep.Excused = true })
	return exit.WithCode(exit.Failed, diag.Run.Hint(fmt.Errorf("converged, but for states that may fail: %w", r.excused),
		"correct what failed; the next run applies these states again"))
}

// endTurns records the result of the run in the rollouts of the host's channels.
func (r *run) endTurns(ctx context.Context, result error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTime)
	defer cancel()
	var tried *ledger.Pair
	if r.acted {
		tried = r.report.To
	}
	r.turns.End(ctx, tried, result)
}

// provenHere checks that the deployed pair is healthy, unless this run has found that already.
func (r *run) provenHere(ctx context.Context) error {
	if p := r.ledger.Proven; p.Proves(r.ledger.Good) && p.Run == r.id {
		return nil
	}
	r.only = procedure.Only{} // even in a run of single steps, which skips probes
	if err := r.serving.HealthyNow(ctx, *r.ledger.Good); err != nil {
		return fmt.Errorf("%s is not healthy: %w", r.ledger.Good, err)
	}
	return nil
}

// withAlso adds a later error to the error of a run. The exit code of the run stays, if it has one.
func withAlso(err, also error) error {
	if err == nil || also == nil {
		return errors.Join(err, also)
	}
	return exit.WithCode(exit.Code(err), errors.Join(err, also))
}

// remember writes the identity of the host and the targets of its links into the ledger, and reports whether they have
// changed.
func (r *run) remember() (changed bool) {
	links := r.serving.RememberLinks()
	return r.rememberWho() || links
}

// begin returns a new run with its report.
func (a *Agent) begin(command string, test bool, book *ledger.Ledger) (*run, error) {
	hostname, err := a.TreeHostname()
	if err != nil {
		return nil, err
	}
	a.Lists = &fetch.Lists{} // of this run
	started := a.Time()
	rep := &report.Report{ID: report.NewID(started), Command: command, Test: test, Host: hostname, Started: started.UTC(),
		From: book.Good, OtherRoot: a.Layout.Relocated()}
	return a.newRun(test, book, rep, report.Record(rep, a.Secrets(), a.Sinks...)), nil
}

// newRun returns a run with its parts.
func (a *Agent) newRun(test bool, book *ledger.Ledger, rep *report.Report, record *report.Builder) *run {
	r := &run{
		Agent: a, id: rep.ID, test: test, ledger: book, report: rep, record: record}
	r.connection = &connection.Run{
		Site: &a.Site, Test: test, Ledger: book, Record: record, OpenStore: a.OpenStore, Save: r.save,
		CheckedRoot: a.CheckedRoot,
	}
	r.releases = &releases.Run{Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record, Connection: r.connection}
	r.undo = &recording.Run{Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record}
	r.selfTest = &selftest.Run{
		Host: &a.Host, ID: r.id, Test: test, Record: record, Self: a.Self, Undo: r.undo,
		Lend: func() *os.File { return r.held.Lend() }, Settings: func() *value.Map { return r.project.Settings },
	}
	r.serving = &serving.Run{
		Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record, Began: a.UnitClock(), ProbeAnyRoot: a.ProbeAnyRoot,
		Save: r.save, Ending: r.ending, Intact: r.releases.Intact, HookEnv: r.hookEnv, Replaced: r.releases.Replaced,
		AsksHealth: func() bool { return r.only.Has(procedure.Health) },
	}
	r.balance = &balance.Run{
		Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record, Open: a.OpenBalancers, Save: r.save,
		Cluster: func() string { return r.identity.Cluster() }, Healthy: r.provenHere,
	}
	r.turns = &turns.Run{
		Site: &a.Site, ID: r.id, Test: test, Ledger: book, Record: record, Host: rep.Host, Identity: &r.identity,
		Open: func() (store.Store, error) { return r.OpenStore(r.connection.URL()) }, Save: r.save,
		LockWait: delivery.LockWait,
	}
	r.linking = &linking.Run{Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record, Serving: r.serving}
	r.quarantine = &quarantine.Run{Host: &a.Host, ID: r.id, Ledger: book, Record: record, Turns: r.turns, Save: r.save}
	r.retention = &retention.Run{
		Host: &a.Host, ID: r.id, Ledger: book, Record: record, Identity: &r.identity, FailedBefore: r.quarantine.FailedBefore,
	}
	r.fault = &fault.Run{
		Host: &a.Host, ID: r.id, Ledger: book, Record: record, Report: rep, SelfTest: r.selfTest, Retention: r.retention,
		Ending: r.ending,
	}
	r.topFiles = &topfiles.Run{
		Host: &a.Host, Test: test, Ledger: book, Record: record, Top: func() *report.Top { return rep.Top }, Save: r.save,
		Native: a.Engine == nil && a.Config.Engine == "native", BeforeLinks: func() bool { return r.beforeLinks },
	}
	r.delivery = &delivery.Run{
		Site: &a.Site, ID: r.id, Ledger: book, Record: record, Report: rep,
		Readable: outgoing.NewReadable(a.Layout, rep, record),
		Identity: &r.identity, StoreURL: r.connection.URL, Open: a.OpenStore, Save: r.save, Key: r.turns.Key,
	}
	r.project = &project.Run{
		Host: &a.Host, ID: r.id, Test: test, Ledger: book, Record: record, Identity: &r.identity, Only: &r.only,
		Intact: r.releases.Intact, HookEnv: r.hookEnv, Hooks: r.hooks, Request: r.request, Observing: r.observing,
		Synced: r.undo.Synced, RecordProgram: r.beforeProgram,
		Kept: func(dir string) { r.retention.Archives = append(r.retention.Archives, dir) },
	}
	return r
}
