package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// withoutLedger returns a host whose identity was given, with versions 1 and 2 of the service on its disk, of which 2
// is deployed. It has lost its ledger, the copy, the link `current`, and the given files. If unnamed is set, no channel
// of the store has version 2 any more.
func withoutLedger(t *testing.T, unnamed bool, lost ...string) *lab {
	t.Helper()
	l := givenIdentity(t)
	l.Config.Store = "mem://"
	l.publish("2")
	l.repo.Release("myapp", "1", "production",
		artifacttest.Files{"version": "1", "salt/config/states/top.sls": "base: {}"})
	l.ticks(exit.OK)
	if unnamed {
		must(t, l.Hold("load test"))
		l.publish("3")
		l.ticks(exit.OK)
	}
	l.engine.converged, l.Config.Store = nil, ""
	for _, path := range append([]string{"/var/lib/corpus/ledger.json", "/srv/projects/.ledger.json",
		"/srv/projects/myapp/current"}, lost...) {
		must(t, os.RemoveAll(l.Layout.Path(path)))
	}
	return l
}

const (
	lostReports = "/var/lib/corpus/reports"
	lostWho     = "/srv/projects/myapp/.host.json"
)

// TestHostThatLostItsLedgerAndCurrentConverges checks that the agent finds the last release from the files that remain.
func TestHostThatLostItsLedgerAndCurrentConverges(t *testing.T) {
	for name, c := range map[string]struct {
		lost []string
		code int
	}{
		"with reports":                       {nil, exit.OK},
		"with reports, without next":         {[]string{"/srv/projects/myapp/next", "/srv/service"}, exit.OK},
		"without reports":                    {[]string{lostReports, lostWho}, exit.Usage},
		"without reports and previous":       {[]string{lostReports, lostWho, "/srv/projects/myapp/previous"}, exit.Usage},
		"without reports and project":        {[]string{lostReports, lostWho, "/srv/projects/myapp/project"}, exit.Usage},
		"without reports and /srv/service":   {[]string{lostReports, lostWho, "/srv/service"}, exit.Usage},
		"without reports, with the identity": {[]string{lostReports, "/srv/service"}, exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			l := withoutLedger(t, false, c.lost...)
			if s := mustStatus(t, l); s.Deployed == nil || s.Deployed.Service.Version != "2" {
				t.Errorf("status has the deployed pair %v", s.Deployed)
			}
			for range 2 {
				l.ticks(c.code)
				if l.engine.last() != "b1+2" {
					t.Errorf("converged %q, want the earlier pair", l.engine.converged)
				}
				l.engine.converged = nil
			}
			if l.version("service/current") != "2" {
				t.Error("the links are not repaired")
			}
			l.Config.Store = "mem://"
			if _, err := l.Deploy(t.Context(), given("myapp", "testing"), false); err != nil {
				t.Error(err)
			}
			l.ticks(exit.OK)
		})
	}
}

// TestReleasesThatNoLinkNamesAreNotDeployed checks releases on the disk without a link, as a dry run leaves them. The
// next deploy is a first one.
func TestReleasesThatNoLinkNamesAreNotDeployed(t *testing.T) {
	l := withoutLedger(t, false, lostReports, lostWho, "/srv/projects/myapp/next", "/srv/projects/myapp/previous",
		"/srv/projects/myapp/project", "/srv/service",
		"/srv/base", "/srv/projects/base/current", "/srv/projects/base/next", "/srv/projects/base/project")
	if s := mustStatus(t, l); s.Deployed != nil || s.BaseAlone != nil {
		t.Errorf("status has the deployed pair %v, base alone %v", s.Deployed, s.BaseAlone)
	}
	if _, err := l.Converge(t.Context(), false); exit.Code(err) != exit.Usage || len(l.engine.converged) > 0 {
		t.Errorf("converge: %v, converged %q", err, l.engine.converged)
	}
	l.Config.Store = "mem://"
	r, err := l.Deploy(t.Context(), given("myapp", "testing"), false)
	if err != nil || r.From != nil {
		t.Errorf("the deploy started from %v, %v", r.From, err)
	}
	l.links("2", "2", "")
}

// TestHostWithoutAnyRecordOfItsIdentity checks that the hint lists the missing arguments, and that a run with them
// continues.
func TestHostWithoutAnyRecordOfItsIdentity(t *testing.T) {
	l := withoutLedger(t, true, lostReports, lostWho)
	for range 2 {
		_, err := l.Deploy(t.Context(), agent.Given{}, false)
		if hint := diag.HintOf(err); exit.Code(err) != exit.Usage ||
			!strings.Contains(hint, "corpus-agent deploy myapp INSTANCE --store URL, where INSTANCE may be production, "+
				"testing") {
			t.Errorf("exit code %d, %v, hint %q", exit.Code(err), err, hint)
		}
	}
	l.Config.Store = "mem://"
	if _, err := l.Deploy(t.Context(), given("myapp", "testing"), false); err != nil {
		t.Error(err)
	}
	l.links("3", "3", "2")
	l.Config.Store = ""
	l.ticks(exit.OK)
}

// TestQuarantinedReleaseIsNotTakenAsDeployed checks this for the newest release on the disk.
func TestQuarantinedReleaseIsNotTakenAsDeployed(t *testing.T) {
	l := withoutLedger(t, false, "/srv/projects/myapp/next", "/srv/projects/myapp/previous")
	l.Config.Store = "mem://"
	l.ticks(exit.OK)
	l.publish("3-broken")
	l.ticks(exit.RolledBack)
	dirs, err := filepath.Glob(l.Layout.Path("/srv/projects/myapp/archives/*/project.failed"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v, %v", dirs, err)
	}
	for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Path("/srv/projects/myapp/current"),
		l.Layout.Path("/srv/projects/myapp/next")} {
		must(t, os.Remove(path))
	}
	l.ticks(exit.OK)
	l.links("2", "2", "1")
}

// TestUnwritableCopyOfTheLedgerIsReported also checks that the run completes.
func TestUnwritableCopyOfTheLedgerIsReported(t *testing.T) {
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.engine.during = func(state.Request) {
		must(t, os.RemoveAll(l.Layout.LedgerCopy()))
		// No file can replace a directory that is not empty.
		must(t, os.MkdirAll(filepath.Join(l.Layout.LedgerCopy(), "of", "others"), 0o755))
	}
	r := l.expect(exit.OK)
	noted(t, r, "the ledger has no copy")
	l.links("2", "2", "1")
	l.engine.during = nil
	l.expect(exit.OK)
	if data, err := os.ReadFile(l.Layout.LedgerCopy()); err != nil || len(data) == 0 {
		t.Errorf("the next run wrote no copy: %v", err)
	}
}

// TestDeployOverALostLink checks that a failed deploy rolls back to the deployed pair, and that a successful one has it
// as the previous pair.
func TestDeployOverALostLink(t *testing.T) {
	l := newLab(t)
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	current := l.Layout.Path("/srv/projects/myapp/current")
	must(t, os.Remove(current))
	l.publish("3-broken")
	l.expect(exit.RolledBack)
	l.links("2", "2", "1")
	must(t, os.Remove(current))
	l.publish("4")
	l.expect(exit.OK)
	l.links("4", "4", "2")
}
