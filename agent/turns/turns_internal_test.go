package turns

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/balance"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/grains"
)

const runID = "20260105T090000.000001"

var (
	production = artifact.Ref{Project: "myapp", Channel: "production"}
	began      = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
)

// version returns a release of the service.
func version(n string) artifact.Release {
	return artifact.Release{Project: "myapp", Version: n, Digest: artifact.Digest("sha256:" + strings.Repeat(n, 64))}
}

func pairOf(n string) *ledger.Pair { return &ledger.Pair{Service: version(n)} }

// newRun returns the turn of a host that has version 1, in a run.
func newRun(t *testing.T) (*Run, *report.Report, *recording) {
	t.Helper()
	rep, s, files := &report.Report{ID: runID}, &recording{Store: mem.New()}, layout.At(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(files.HostKey()), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Run{Site: &site.Site{Layout: files, Now: func() time.Time { return began },
		Config: config.Config{UploadReports: true}},
		ID: runID, Ledger: &ledger.Ledger{Good: pairOf("1")}, Record: report.Record(rep, nil), Host: "myapp-production-1",
		Identity: &grains.Identity{}, Open: func() (store.Store, error) { return s, nil },
		Save: func() error { return nil }}, rep, s
}

// recording is a store that records the written keys, and can be unreachable.
type recording struct {
	store.Store
	away bool
	puts []string
}

func (s *recording) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	if s.away {
		return store.Info{}, &store.Error{Op: store.OpPut, Object: key, Kind: store.ErrUnreachable}
	}
	s.puts = append(s.puts, key)
	return s.Store.Put(ctx, key, r, size, cond)
}

// written returns the outcomes and run IDs of the results that were written since the last call.
func (s *recording) written() (results []string) {
	for _, key := range s.puts {
		_, name, _ := strings.Cut(key, "/results/myapp-production-1/")
		results = append(results, name[:max(0, strings.LastIndexByte(strings.TrimSuffix(name, ".json"), '.'))])
	}
	s.puts = nil
	return results
}

// took returns the turn of a host that has deployed version 2.
func took() ledger.Turn {
	return ledger.Turn{Channel: production, Rollout: "1-c0ffee", Release: version("2"), Name: "myapp-production-1",
		Took: runID}
}

func TestOutcomeOfARun(t *testing.T) {
	rolledBack := exit.WithCode(exit.RolledBack, errors.New("a state failed"))
	failed := exit.WithCode(exit.Failed, errors.New("a state failed"))
	for name, c := range map[string]struct {
		good, tried, failing, bad string
		result                    error
		change                    func(*ledger.Turn)
		want                      rollout.Outcome
	}{
		"healthy":                       {good: "2", tried: "2", want: rollout.Healthy},
		"nothing new":                   {good: "2", want: rollout.Healthy},
		"another release":               {good: "1"},
		"rolled back":                   {good: "1", tried: "2", result: rolledBack, want: rollout.RolledBack},
		"rolled back from another one":  {good: "1", tried: "3", result: rolledBack},
		"quarantined":                   {good: "1", bad: "2", want: rollout.RolledBack},
		"the first deploy failed":       {tried: "2", result: failed, want: rollout.Failed},
		"fails later":                   {good: "2", result: failed, want: rollout.Failed},
		"a dev host keeps the release":  {good: "1", failing: "2", want: rollout.Failed},
		"store out of reach":            {good: "2", result: exit.WithCode(exit.Unreachable, errors.New("no answer"))},
		"kept by the load balancer":     {good: "1", tried: "2", result: &balance.NotLeft{}},
		"waits":                         {good: "2", change: func(t *ledger.Turn) { t.Took = "" }},
		"not in the roster":             {good: "2", change: func(t *ledger.Turn) { t.Name = "" }},
		"rolled back, and quarantined":  {good: "1", tried: "2", bad: "2", result: rolledBack, want: rollout.RolledBack},
		"quarantined without a release": {bad: "2"},
	} {
		r, _, _ := newRun(t)
		pair := func(n string) *ledger.Pair {
			if n == "" {
				return nil
			}
			return pairOf(n)
		}
		r.Ledger.Good, r.Ledger.Failing = pair(c.good), pair(c.failing)
		if c.bad != "" {
			release := version(c.bad)
			r.Ledger.Bad = []ledger.Bad{{Release: &release, Run: "0"}}
		}
		turn := took()
		if c.change != nil {
			c.change(&turn)
		}
		if got := r.outcome(turn, pair(c.tried), c.result); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFailureOfBaseIsNoneOfTheService checks runs of a pair with base 9 that failed: if base is in quarantine and the
// service is not, the rollout of the service has no result of them.
func TestFailureOfBaseIsNoneOfTheService(t *testing.T) {
	base := artifact.Release{Project: artifact.Base, Version: "9", Digest: artifact.Digest("sha256:" +
		strings.Repeat("9", 64))}
	tried := &ledger.Pair{Base: &base, Service: version("2")}
	service, onBase := version("2"), took()
	onBase.Release = base
	for _, c := range []struct {
		turn    ledger.Turn
		good    string
		failing bool
		code    int
		bad     []*artifact.Release
		want    rollout.Outcome
	}{
		{turn: took(), good: "1", code: exit.RolledBack, bad: []*artifact.Release{&base}},
		{turn: took(), good: "1", code: exit.RollbackFailed, bad: []*artifact.Release{&base}},
		{turn: took(), good: "2", code: exit.RolledBack, bad: []*artifact.Release{&base}},
		{turn: took(), code: exit.Failed, bad: []*artifact.Release{&base}},
		{turn: took(), good: "1", failing: true, code: exit.RollbackFailed, bad: []*artifact.Release{&base}},
		{turn: took(), good: "1", code: exit.RolledBack, bad: []*artifact.Release{&service}, want: rollout.RolledBack},
		{turn: took(), good: "1", code: exit.RolledBack, bad: []*artifact.Release{&base, &service},
			want: rollout.RolledBack},
		{turn: took(), good: "1", code: exit.RolledBack, want: rollout.RolledBack}, // the host is at fault
		{turn: onBase, good: "1", code: exit.RolledBack, bad: []*artifact.Release{&base}, want: rollout.RolledBack},
		{turn: onBase, good: "1", code: exit.RolledBack, bad: []*artifact.Release{&service}},
	} {
		r, _, _ := newRun(t)
		r.Ledger.Good = nil
		if c.good != "" {
			r.Ledger.Good = pairOf(c.good)
		}
		if c.failing {
			r.Ledger.Failing = tried
		}
		for _, release := range c.bad {
			r.Ledger.Bad = append(r.Ledger.Bad, ledger.Bad{Release: release, Run: "0"})
		}
		if got := r.outcome(c.turn, tried, exit.WithCode(c.code, errors.New("a state failed"))); got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}

func TestResultsAreRecordedOnce(t *testing.T) {
	r, rep, s := newRun(t)
	r.Ledger.Good, r.Ledger.Turns = pairOf("2"), []ledger.Turn{took()}
	s.away = true
	r.End(t.Context(), nil, nil)
	if notes := strings.Join(rep.Notes, "\n"); !strings.Contains(notes, "the next run records it") {
		t.Errorf("notes %q", notes)
	}
	s.away = false
	for _, want := range []string{"healthy." + runID, ""} {
		r.End(t.Context(), nil, nil)
		if got := strings.Join(s.written(), " "); got != want {
			t.Errorf("recorded %q, want %q", got, want)
		}
	}
	r.Test = true
	r.Ledger.Turns[0].Recorded = ""
	r.End(t.Context(), nil, nil)
	if got := s.written(); len(got) != 0 {
		t.Errorf("a dry run recorded %q", got)
	}
}

// TestKeyOfTheHostIsReadOnce checks that a run signs all that it records with the key that it read first.
func TestKeyOfTheHostIsReadOnce(t *testing.T) {
	r, _, _ := newRun(t)
	if r.Key() != nil {
		t.Error("a run that signs nothing has read the key")
	}
	first, err := r.hostKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.Site.Layout.HostKey()); err != nil {
		t.Fatal(err)
	}
	if again, err := r.hostKey(); err != nil || again.Public() != first.Public() || r.Key() != again {
		t.Errorf("the second key is %v, %v", again, err)
	}
}

// TestFailuresAreRecordedInEachRun checks that a failure is recorded with the ID of its run, until a resume and for a
// week, and only by runs that have read whether the rollout was resumed.
func TestFailuresAreRecordedInEachRun(t *testing.T) {
	r, _, s := newRun(t)
	release, until := version("2"), began.Add(lateFailure)
	const failed = "20260105T080000.000001" // the run that rolled back
	r.Ledger.Bad = []ledger.Bad{{Release: &release, Run: failed}}
	turn := took()
	turn.Until = &until
	r.Ledger.Turns = []ledger.Turn{turn}
	end := func(why, want string) {
		t.Helper()
		r.End(t.Context(), nil, nil)
		if got := strings.Join(s.written(), " "); got != want {
			t.Errorf("%s: recorded %q, want %q", why, got, want)
		}
	}
	end("the first time", "rolled-back."+failed)
	r.ID = "20260105T091000.000002"
	end("a run that did not read the rollout", "")
	r.read = []artifact.Ref{production}
	end("a later run", "rolled-back."+failed)
	r.Site.Now = func() time.Time { return until.Add(time.Second) }
	end("after a week", "")
	r.Site.Now = func() time.Time { return began }
	repeatResult(&r.Ledger.Turns[0], plans.Start{Resumed: began})
	end("after a resume", "")
}

func TestResumeLetsHealthyHostsRecordAgain(t *testing.T) {
	turn := took()
	turn.Recorded = string(rollout.Healthy)
	repeatResult(&turn, plans.Start{})
	if turn.Recorded == "" {
		t.Error("without a resume the result is recorded again")
	}
	resumed := plans.Start{}
	resumed.Note(plans.Move{What: "resume", At: began})
	repeatResult(&turn, resumed)
	if turn.Recorded != "" {
		t.Error("after a resume the result is not recorded again")
	}
	turn.Recorded = string(rollout.Healthy)
	if repeatResult(&turn, resumed); turn.Recorded == "" {
		t.Error("the result is recorded in each run after a resume")
	}
}

func TestHaltIsRememberedUntilAResume(t *testing.T) {
	turn := took()
	of := rollout.Rollout{Ref: production}
	take := plans.Verdict{Take: true, Reason: plans.Turn}
	decide := func(v plans.Verdict, member bool, want plans.Reason, wantLost bool) {
		t.Helper()
		if got, lost := remembered(of, &turn, v, member); got.Reason != want || lost != wantLost {
			t.Errorf("the verdict is %s, lost %v; want %s, %v", got.Reason, lost, want, wantLost)
		}
	}
	decide(take, true, plans.Turn, false)
	// A host that is not in the roster records no halt.
	decide(plans.Verdict{Reason: plans.Stops}, false, plans.Stops, false)
	decide(take, true, plans.Turn, false)
	decide(plans.Verdict{Reason: plans.Halted}, true, plans.Halted, false)
	decide(take, true, plans.Halted, true)
	decide(plans.Verdict{Reason: plans.Waits}, true, plans.Waits, false)
	of.Start.Resumed = began
	decide(take, true, plans.Turn, false)
}

func TestAnswersWithoutTheStore(t *testing.T) {
	plan := plans.Default()
	plan.Waves, _ = plans.ParseWaves("50%:1h,100%")
	of := rollout.Rollout{Ref: production, Plan: plan}
	of.Start = plan.NewStart("1-c0ffee", string(version("2").Digest), began,
		[]plans.Host{{Name: "myapp-production-1"}, {Name: "myapp-production-2"}})
	hold := func(r *Run, _ *ledger.Turn) { r.Ledger.Hold = &ledger.Hold{Since: began} }
	later := began.Add(30 * time.Minute)
	for name, c := range map[string]struct {
		change func(*Run, *ledger.Turn)
		start  func(*plans.Start)
		after  time.Duration
		want   plans.Reason // of the answer; "" if the store is read
	}{
		"possibly in its turn": {after: time.Hour},
		"paused":               {after: time.Hour, start: func(s *plans.Start) { s.Paused = true }, want: plans.Paused},
		"an old agent": {after: time.Hour, start: func(s *plans.Start) { s.Agent = "9.0" },
			change: func(r *Run, _ *ledger.Turn) { r.Site.Version = "1.0" }, want: oldAgent},
		"held": {after: time.Hour, change: hold, want: onHold},
		"held, and nothing deployed": {after: time.Hour, change: func(r *Run, turn *ledger.Turn) {
			hold(r, turn)
			r.Ledger.Good = nil
		}},
		"ahead": {change: func(r *Run, _ *ledger.Turn) { r.Ahead = true }, want: plans.Waits},
		"delayed by the store": {after: 20 * time.Minute, want: plans.Closed, start: func(s *plans.Start) { s.Skipped = 2 },
			change: func(_ *Run, turn *ledger.Turn) { turn.Not, turn.Reason = &later, string(plans.Closed) }},
		"the wait is over": {after: 40 * time.Minute, start: func(s *plans.Start) { s.Skipped = 2 },
			change: func(_ *Run, turn *ledger.Turn) { turn.Not, turn.Reason = &later, string(plans.Closed) }},
	} {
		r, _, _ := newRun(t)
		turn, mine := took(), of
		if c.start != nil {
			c.start(&mine.Start)
		}
		if c.change != nil {
			c.change(r, &turn)
		}
		turn.Basis = basisOf(mine.Plan, mine.Start)
		a, final := r.withoutStore(mine, &turn, began.Add(c.after), r.place(), turn.Basis)
		if final != (c.want != "") || final && a.reason != c.want || final && a.take {
			t.Errorf("%s: %+v, final %v; want %q", name, a, final, c.want)
		}
		if turn.Not != nil && final {
			if _, final := r.withoutStore(mine, &turn, began.Add(c.after), r.place(), "another plan"); final {
				t.Errorf("%s: after a change of the plan the store is not read", name)
			}
		}
	}
}

func TestInterruptedDeployWithoutTheStore(t *testing.T) {
	r, rep, _ := newRun(t)
	turn := took()
	turn.Took = "20260105T085000.000000"
	r.Ledger.Turns = []ledger.Turn{turn}
	r.Ahead = true
	if got := r.Resume(*pairOf("2")); !got.Same(*pairOf("2")) {
		t.Errorf("with --ahead the deploy of %s is continued", got)
	}
	r.Ahead = false
	if got := r.Resume(*pairOf("2")); !got.Same(*pairOf("2")) {
		t.Errorf("without its files, the host rolls back to %s", got)
	}
	if len(rep.Notes) != 0 || r.Ledger.Turns[0].Waits() {
		t.Errorf("notes %q, turn %+v", rep.Notes, r.Ledger.Turns[0])
	}
}

func TestWaitingReleasesAreNamed(t *testing.T) {
	r, _, _ := newRun(t)
	base := artifact.Release{Project: artifact.Base, Version: "7"}
	if named, waits := r.Waiting(ledger.Pair{Base: &base, Service: version("1")}); waits {
		t.Errorf("%s waits", named)
	}
	next := base
	next.Version = "8"
	r.waiting = []artifact.Release{next, version("2")}
	named, waits := r.Waiting(ledger.Pair{Base: &base, Service: version("1")})
	if !waits || named.Base.Version != "8" || named.Service.Version != "2" || base.Version != "7" {
		t.Errorf("%s, %v", named, waits)
	}
}

func TestHostRollsBackAbortedRelease(t *testing.T) {
	r, _, _ := newRun(t)
	aborted := version("1")
	if r.GoesBack(*pairOf("0")) || r.Aborted(aborted) {
		t.Error("without an abort, the host rolls back")
	}
	r.aborted = &aborted
	if !r.GoesBack(*pairOf("0")) || !r.Aborted(aborted) || r.GoesBack(*pairOf("1")) {
		t.Error("after an abort, the host does not roll back, or to the same release")
	}
	r.Ledger.Running = &ledger.Running{}
	if r.GoesBack(*pairOf("0")) {
		t.Error("the host rolls back while another deploy is unfinished")
	}
}
