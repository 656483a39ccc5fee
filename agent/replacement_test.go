package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestReplacementReleaseIsReportedUntilDeploy removes the directory of the deployed release. The commands of `why`
// restore it; a converge, which does not read the store, uses the earlier release, and reports which release it
// replaces.
func TestReplacementReleaseIsReportedUntilDeploy(t *testing.T) {
	l := newNativeLab(t)
	clock := time.Now().Add(time.Minute).UTC()
	l.Now = func() time.Time { return clock }
	for _, version := range []string{"1", "2"} {
		l.states(version, "/etc/app/app.conf:\n  file.managed:\n    - makedirs: True\n    - contents: '"+version+"'\n")
		l.expect(exit.OK)
	}
	gone, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
	must(t, err)
	must(t, os.RemoveAll(gone))
	advises := func(want string) {
		t.Helper()
		w, err := l.Why()
		if err != nil || !slices.ContainsFunc(w.Next, func(n string) bool { return strings.HasPrefix(n, want) }) ||
			slices.Contains(w.Next, "corpus-agent converge") {
			t.Errorf("why has the advice %q, %v, want %q", w.Next, err, want)
		}
	}
	advises("corpus-agent deploy")
	clock = clock.Add(10 * time.Minute)
	if _, err := l.Converge(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	s := mustStatus(t, l)
	if s.Deployed.Service.Version != "1" || s.StandsFor == nil || s.StandsFor.Service.Version != "2" ||
		!s.Since.Equal(clock) || len(s.Drift) > 0 {
		t.Errorf("deployed %v since %v for %v, drift %q; want 1 since %v for 2", s.Deployed, s.Since, s.StandsFor, s.Drift,
			clock)
	}
	advises("corpus-agent deploy")
	if w, err := l.Why(); err != nil || !strings.Contains(w.Reason, "replaces myapp 2") {
		t.Errorf("why has the reason %q, %v", w.Reason, err)
	}
	if err := l.Hold("what was deployed is not new"); err != nil {
		t.Fatal(err)
	}
	l.expect(exit.OK)
	if s := mustStatus(t, l); s.Deployed.Service.Version != "2" || s.StandsFor != nil {
		t.Errorf("deployed %v, for %v", s.Deployed, s.StandsFor)
	}
}

// TestRolledBackReleasesDoNotDisplaceGoodOnes rolls back by hand several times. The earlier good releases remain as
// targets of a rollback.
func TestRolledBackReleasesDoNotDisplaceGoodOnes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.KeepReleases, l.Config.KeepFailed = 3, 2
	for _, version := range []string{"6.0", "6.2", "6.3"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	for _, version := range []string{"6.5", "6.6", "6.7"} {
		l.publish(version)
		l.expect(exit.OK)
		if _, err := l.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	l.publish("6.8")
	l.expect(exit.OK)
	left, err := filepath.Glob(l.Layout.Path("/srv/projects/myapp/releases/6.3-*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	must(t, os.RemoveAll(left[0]))
	if _, err := l.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.version("service/current"); got != "6.2" {
		t.Errorf("the rollback led to %q", got)
	}
	if left, _ := filepath.Glob(l.Layout.Path("/srv/projects/myapp/releases/6.[5678]-*")); len(left) != 2 {
		t.Errorf("the releases are %v, want two", left)
	}
}

// TestRollbackNeverSelectsLaterRelease rolls back to a named version. A later `rollback` does not select a release that
// was deployed after it.
func TestRollbackNeverSelectsLaterRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"4.1", "4.2", "4.3.1", "4.4"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	if _, err := l.RollbackTo(t.Context(), "4.2"); err != nil {
		t.Fatal(err)
	}
	l.links("4.2", "4.2", "4.1")
	if _, err := l.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.links("4.1", "4.1", "")
	if s := mustStatus(t, l); s.Previous != nil {
		t.Errorf("previous is %v", s.Previous)
	}
	if _, err := l.Rollback(t.Context()); exit.Code(err) != exit.Usage {
		t.Errorf("a rollback without an earlier release ended with %v", err)
	}
	if _, err := l.RollbackTo(t.Context(), "4.3.1"); err != nil {
		t.Errorf("a rollback to a named version: %v", err)
	}
}
