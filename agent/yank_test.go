package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (l *lab) yank(project, version string) {
	l.t.Helper()
	if _, err := releases.Yank(context.Background(), l.repo.Publisher, project, version, "loses sessions"); err != nil {
		l.t.Fatal(err)
	}
}

func TestHostOnWithdrawnReleaseReportsAndKeepsIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("b1")
	l.publish("1")
	l.expect(exit.OK)
	l.yank("myapp", "1")
	r := l.expect(exit.OK)
	noted(t, r, "this host runs a release that is withdrawn: myapp 1 was withdrawn on")
	noted(t, r, "loses sessions")
	l.links("1", "1", "")
	status, err := l.Status()
	if err != nil || len(status.Withdrawn) != 1 || status.Withdrawn[0].Release.Version != "1" {
		t.Errorf("status has the withdrawn release %v (%v), want myapp 1", status.Withdrawn, err)
	}
	// A corrected version is deployed, and no note remains.
	l.publish("2")
	l.expect(exit.OK)
	l.links("2", "2", "1")
	if _, err := releases.Unyank(context.Background(), l.repo.Publisher, "myapp", "1"); err != nil {
		t.Fatal(err)
	}
	l.expect(exit.OK)
	if status, _ := l.Status(); len(status.Withdrawn) != 0 {
		t.Errorf("status still has the withdrawn release %v", status.Withdrawn)
	}
}

func TestHostNotOnWithdrawnReleaseNeverGetsIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("b1")
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.yank("myapp", "2")
	r := l.expect(exit.OK)
	noted(t, r, "myapp/testing names a release that is withdrawn (myapp 2 was withdrawn")
	noted(t, r, "this host keeps 1")
	l.links("1", "1", "")

	l.publishBase("b2")
	l.yank("base", "b2")
	l.expect(exit.OK)
	if got := l.version("base/current"); got != "b1" {
		t.Errorf("base is %q, want b1: b2 was withdrawn", got)
	}
	why, err := l.Why()
	for _, want := range []string{"named base b2 when the store was last asked, which is withdrawn (on ",
		"loses sessions), so this host keeps base b1", "so this host keeps myapp 1"} {
		if err != nil || !strings.Contains(why.Reason, want) {
			t.Errorf("why lacks %q: %q, %v", want, why.Reason, err)
		}
	}
}

func TestNewHostDoesNotDeployWithdrawnRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.yank("myapp", "1")
	_, err := l.deploy()
	if exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), "withdrawn") {
		t.Errorf("deploy: %v (exit code %d), want it refused as withdrawn", err, exit.Code(err))
	}
	l.links("", "", "")
}

func TestNoRollbackToWithdrawnRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	first := l.expect(exit.OK)
	l.publish("2")
	last := l.expect(exit.OK)
	l.yank("myapp", "1")
	l.expect(exit.OK)
	ctx := context.Background()
	for name, back := range map[string]func() (*report.Report, error){
		"rollback":                       func() (*report.Report, error) { return l.Rollback(ctx) },
		"rollback --to 1":                func() (*report.Report, error) { return l.RollbackTo(ctx, "1") },
		"rollback --converge":            func() (*report.Report, error) { return l.RollbackConverge(ctx, "", false) },
		"rollback --converge --test":     func() (*report.Report, error) { return l.RollbackConverge(ctx, "", true) },
		"rollback --converge --to 1":     func() (*report.Report, error) { return l.RollbackConverge(ctx, "1", false) },
		"rollback --converge to its run": func() (*report.Report, error) { return l.RollbackConverge(ctx, first.ID, false) },
	} {
		_, err := back()
		if exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), "withdrawn") ||
			!strings.Contains(diag.HintOf(err), "corpus yank --undo") {
			t.Errorf("%s to a withdrawn release: %v (exit code %d), want exit code %d and a hint", name, err, exit.Code(err),
				exit.Refused)
		}
		l.links("2", "2", "1")
	}
	// A host may undo the changes since the deploy of a release that is withdrawn, since it stays on that release.
	l.yank("myapp", "2")
	l.expect(exit.OK)
	if _, err := l.RollbackConverge(ctx, last.ID, false); err != nil {
		t.Errorf("undoing what was changed since the release was deployed: %v", err)
	}
}
