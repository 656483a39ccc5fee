package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestFirstDeployUpgradeAndUnchangedRun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	l.links("1", "1", "")
	if got := l.version("base/current"); got != "1" {
		t.Errorf("base is %q, want 1", got)
	}
	l.publish("2")
	l.expect(exit.OK)
	l.links("2", "2", "1")
	l.expect(exit.OK)
	l.links("2", "2", "1")
	if want := []string{"1+1", "1+2", "1+2"}; !slices.Equal(l.engine.converged, want) {
		t.Errorf("converged %v, want %v", l.engine.converged, want)
	}
	target, err := os.Readlink(l.Layout.Path("/srv/service"))
	if err != nil || target != "projects/myapp" {
		t.Errorf("/srv/service is %q, %v, want a relative link to the project", target, err)
	}
}

func TestUnitsCanStartFromCurrentDuringTheFirstConverge(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.engine.during = func(state.Request) {
		if got := l.version("service/current"); got != "1" {
			t.Errorf("current is %q while the first deploy converges, want 1", got)
		}
	}
	l.expect(exit.OK)
}

func TestServiceDeploysWithoutBase(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	noted(t, l.expect(exit.OK), "no base")
	l.links("1", "1", "")
}

func TestFailedDeployRollsBackAndIsNotRetried(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	r := l.expect(exit.RolledBack)
	l.links("1", "1", "")
	if got := l.engine.last(); got != "1+1" {
		t.Errorf("after the rollback %q was converged, want the good pair", got)
	}
	kept := filepath.Join(l.Layout.Project("myapp").Archives(), r.ID, "project.failed", "version")
	if data, err := os.ReadFile(kept); err != nil || string(data) != "2-broken" {
		t.Errorf("the failed release is kept as %q, %v", data, err)
	}
	noted(t, l.expect(exit.OK), "quarantined")
	l.links("1", "1", "")
	l.publish("3")
	l.expect(exit.OK)
	l.links("3", "3", "1")
}

func TestQuarantinedFirstBaseDoesNotBlockService(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publishBase("1-broken")
	l.expect(exit.RolledBack)
	l.publish("2")
	r := l.expect(exit.OK)
	noted(t, r, "base 1-broken is quarantined")
	l.links("2", "2", "1")
	if r.Withheld == nil || r.Withheld.Base == nil {
		t.Errorf("withheld is %v, want the pair with base", r.Withheld)
	}
	l.publishBase("2")
	l.expect(exit.OK)
	if got := l.version("base/current"); got != "2" {
		t.Errorf("base is %q, want 2", got)
	}
}

func TestFailedBaseIsQuarantinedWithoutService(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	l.publishBase("2-broken")
	l.expect(exit.RolledBack)
	if got := l.version("base/current"); got != "1" {
		t.Errorf("base is %q after the rollback, want 1", got)
	}
	// The same service is deployed with a corrected base.
	l.publishBase("3")
	l.expect(exit.OK)
	if got := l.engine.last(); got != "3+1" {
		t.Errorf("converged %q, want 3+1", got)
	}
}

func TestFailedFirstDeployKeepsNextAndRemovesCurrent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1-broken")
	noted(t, l.expect(exit.Failed), "nothing to roll back to")
	l.links("1-broken", "", "")
	l.expect(exit.Failed) // no other release can run, so it is retried
	l.publish("2")
	l.expect(exit.OK)
	l.links("2", "2", "")
}

func TestFailedRollbackHasHint(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	// From here on no release converges, the old one included.
	l.engine.fails = func(string) error { return exit.WithCode(exit.Failed, errors.New("a state failed")) }
	_, err := l.deploy()
	if exit.Code(err) != exit.RollbackFailed || !strings.Contains(diag.HintOf(err), "corpus-agent converge") {
		t.Errorf("exit code %d, hint %q; want %d and the commands to run", exit.Code(err), diag.HintOf(err),
			exit.RollbackFailed)
	}
}

func releaseDirs(t *testing.T, l *lab) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(l.Layout.Project("myapp").Releases(), "*"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func TestDryRunWritesNoLinkAndNoReport(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	before, _ := os.ReadFile(l.Layout.Ledger())
	l.engine.during = func(r state.Request) {
		if !r.Test {
			t.Error("the engine did not make a dry run")
		}
	}
	if _, err := l.Deploy(context.Background(), agent.Given{}, true); err != nil {
		t.Fatal(err)
	}
	l.links("1", "1", "")
	if got := l.engine.last(); got != "+2" {
		t.Errorf("dry run of %q, want the new release", got)
	}
	after, _ := os.ReadFile(l.Layout.Ledger())
	if string(before) != string(after) {
		t.Error("a dry run changed the ledger")
	}
	if reports, err := l.History(); err != nil || len(reports) != 1 {
		t.Errorf("%d reports, %v, want that of the real run", len(reports), err)
	}
}

func TestUnreachableStoreConvergesCurrentRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.store = storetest.NewFaulty(l.repo.Store, storetest.Fault{Err: store.ErrUnreachable})
	l.expect(exit.Unreachable)
	if len(l.engine.converged) != 2 {
		t.Errorf("converged %d times, want twice", len(l.engine.converged))
	}
}

func TestRefusedMetadataConvergesCurrentRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.Now = func() time.Time { return time.Now().AddDate(0, 1, 0) }
	l.expect(exit.Refused)
	if len(l.engine.converged) != 2 {
		t.Errorf("converged %d times, want twice", len(l.engine.converged))
	}
}

func TestTamperedArtifactIsNotUnpacked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	release := l.repo.Release("myapp", "2", "testing", map[string]string{"version": "2"})
	data := l.repo.Object(trust.ObjectKey(release))
	data[len(data)-1] ^= 1
	l.repo.Replace(trust.ObjectKey(release), data)
	l.expect(exit.Refused)
	l.links("1", "1", "")
	if n := len(releaseDirs(t, l)); n != 1 {
		t.Errorf("%d releases on disk, want 1", n)
	}
	left, err := os.ReadDir(l.Layout.Incoming())
	if err != nil || len(left) != 0 {
		t.Errorf("%d files left of the fetch, %v", len(left), err)
	}
}

func TestHostWithoutRootOfTrustIsAUsageError(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	_, err := l.Deploy(context.Background(), agent.Given{}, false)
	if exit.Code(err) != exit.Usage || !strings.Contains(diag.HintOf(err), "--trust-root") {
		t.Errorf("error is %v (hint %q), want a usage error about --trust-root", err, diag.HintOf(err))
	}
}

func TestTrustRootCanBeADigest(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	root := l.repo.Root()
	good := trustDigest(root)
	if _, err := l.Deploy(context.Background(), agent.Given{TrustRoot: trustDigest([]byte("other"))},
		false); exit.Code(err) != exit.Refused {
		t.Errorf("another digest: %v, want it refused", err)
	}
	if _, err := l.Deploy(context.Background(), agent.Given{TrustRoot: good}, false); err != nil {
		t.Errorf("the right digest: %v", err)
	}
}

func TestSecondRunNamesTheProcessWithTheLock(t *testing.T) {
	l := newLab(t)
	l.publish("1")
	l.engine.during = func(state.Request) {
		_, err := l.Converge(context.Background(), false)
		var held *lock.Held
		if exit.Code(err) != exit.Locked || !errors.As(err, &held) || held.Holder.Command != "deploy" ||
			held.Holder.PID != os.Getpid() {
			t.Errorf("a second run: %v, want the process that holds the lock", err)
		}
	}
	l.expect(exit.OK)
	if len(l.engine.converged) != 1 {
		t.Errorf("converged %d times, want once", len(l.engine.converged))
	}
}

func TestArgumentsThatContradictTheHostnameAreAUsageError(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	if _, err := l.Deploy(context.Background(), given("other", "testing"), false); exit.Code(err) != exit.Usage {
		t.Errorf("error is %v, want a usage error", err)
	}
}

func TestIdentityFromArgumentsIsSaved(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Hostname = func() (string, error) { return "laptop", nil }
	l.publish("1")
	if _, err := l.deploy(); exit.Code(err) != exit.Usage {
		t.Fatalf("without a name: %v, want a usage error", err)
	}
	g := given("myapp", "testing")
	g.TrustRoot = trustDigest(l.repo.Root())
	if _, err := l.Deploy(context.Background(), g, false); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Deploy(context.Background(), agent.Given{}, false); err != nil {
		t.Errorf("the second deploy, without arguments: %v", err)
	}
	id, err := l.Identify(context.Background(), grains.Identity{}, mustStatus(t, l).Host)
	if err != nil || id.Region != "local" || id.Node != "laptop" {
		t.Errorf("identity is %+v, %v, want region local and node laptop", id, err)
	}
}

func mustStatus(t *testing.T, l *lab) inspect.Status {
	t.Helper()
	s, err := l.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHoldPreventsNewReleases(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	if err := l.Hold("load test"); err != nil {
		t.Fatal(err)
	}
	l.publish("2")
	noted(t, l.expect(exit.OK), "held")
	l.links("1", "1", "")
	if held, err := l.Unhold(); err != nil || !held {
		t.Fatal(err)
	}
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

func TestRollbackByHandStaysUntilSomethingNewIsPublished(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	if _, err := l.Rollback(context.Background()); exit.Code(err) != exit.Usage {
		t.Errorf("without an earlier release: %v, want a usage error", err)
	}
	l.publish("2")
	l.expect(exit.OK)
	if _, err := l.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.links("1", "1", "")
	noted(t, l.expect(exit.OK), "quarantined")
	l.links("1", "1", "")
	l.publish("3")
	l.expect(exit.OK)
	l.links("3", "3", "1")
}

func TestGoodReleasesSurviveAnyNumberOfFailures(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.KeepReleases, l.Config.KeepFailed = 2, 2
	l.publish("1")
	l.expect(exit.OK)
	for _, v := range []string{"2-broken", "3-broken", "4-broken", "5-broken"} {
		l.publish(v)
		l.expect(exit.RolledBack)
	}
	l.links("1", "1", "")
	for _, v := range []string{"6", "7", "8"} {
		l.publish(v)
		l.expect(exit.OK)
	}
	l.links("8", "8", "7")
	if n := len(releaseDirs(t, l)); n != 2 {
		t.Errorf("%d good releases are kept, want 2", n)
	}
	failed, err := os.ReadDir(l.Layout.Project("myapp").Archives())
	if err != nil || len(failed) != 2 {
		t.Errorf("%d failed releases are kept, %v, want 2", len(failed), err)
	}
}

func TestInterruptRestoresLinksAndQuarantinesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	ctx, cancel := context.WithCancel(context.Background())
	l.engine.during = func(state.Request) { cancel() }
	_, err := l.Deploy(ctx, agent.Given{}, false)
	if exit.Code(err) != exit.Interrupted {
		t.Fatalf("exit code %d (%v), want %d", exit.Code(err), err, exit.Interrupted)
	}
	l.links("1", "1", "")
	l.engine.during = nil
	l.expect(exit.OK)
	l.links("2", "2", "1")
}
