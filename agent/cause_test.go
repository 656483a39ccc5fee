package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/packages"
)

// inQuarantine lists the releases that are in quarantine.
func (l *lab) inQuarantine() []string {
	l.t.Helper()
	var all []string
	for _, b := range l.quarantined() {
		all = append(all, b.What())
	}
	return all
}

// pairRuns checks which versions of base and of the service are current.
func (l *lab) pairRuns(base, service string) {
	l.t.Helper()
	if got := l.version("base/current") + "+" + l.version("service/current"); got != base+"+"+service {
		l.t.Errorf("%s runs, want %s+%s", got, base, service)
	}
}

// TestReleaseInQuarantineStaysOutWithAnotherBase fails a release of the service in each way, and then publishes new
// bases: each is deployed with the service that ran before.
func TestReleaseInQuarantineStaysOutWithAnotherBase(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for name, fail := range map[string]func(l *lab){
		"states": func(l *lab) { l.publish("2-broken"); l.expect(exit.RolledBack) },
		"a probe": func(l *lab) {
			l.ProbeAnyRoot = true
			l.repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2",
				"corpus.yaml": "health:\n  deadline: 1s\n  retries: 1\n  interval: 10ms\n  probes:\n    - script: /bin/false\n"})
			l.expect(exit.RolledBack)
		},
		"a rollback by hand": func(l *lab) {
			l.publish("2")
			l.expect(exit.OK)
			if _, err := l.Rollback(context.Background()); err != nil {
				l.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.publishBase("1")
			l.publish("1")
			l.expect(exit.OK)
			fail(l)
			l.ProbeAnyRoot = false
			l.pairRuns("1", "1")
			if got := l.inQuarantine(); len(got) != 1 || !strings.HasPrefix(got[0], "myapp 2") {
				t.Fatalf("the quarantine has %v, want the service's release", got)
			}
			l.publishBase("2")
			r := l.expect(exit.OK)
			noted(t, r, "myapp 2")
			l.pairRuns("2", "1")
			if r.Withheld == nil || r.To.String() != "base 2, myapp 1" {
				t.Errorf("the report has the releases %v and withholds %v", r.To, r.Withheld)
			}
			l.expect(exit.OK) // nothing is new
			l.pairRuns("2", "1")
			if _, err := l.Unquarantine(l.quarantined()[0].Release.Version); err != nil {
				t.Fatal(err)
			}
			if name == "a rollback by hand" {
				l.expect(exit.OK)
				l.pairRuns("2", "2")
			}
		})
	}
}

// failIn fails a state whose declaration is in a file.
func (l *lab) failIn(file, when string) {
	l.engine.fails = func(what string) error {
		if what != when {
			return nil
		}
		var list diag.List
		list.Add(diag.Pos{File: file, Line: 1}, "it does not work")
		return list.Err()
	}
}

// TestTheFileOfAFailureDecidesWhichReleaseIsQuarantined deploys a new base and a new service at once.
// The package fault has a test for other files.
func TestTheFileOfAFailureDecidesWhichReleaseIsQuarantined(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for file, want := range map[string]struct{ bad, base, service string }{
		"/srv/base/current/states/common.sls":            {"base 2", "1", "2"},
		"/srv/service/next/salt/config/states/myapp.sls": {"myapp 2", "2", "1"},
	} {
		l := newLab(t)
		l.publishBase("1")
		l.publish("1")
		l.expect(exit.OK)
		l.publishBase("2")
		l.publish("2")
		l.failIn(file, "2+2")
		r := l.expect(exit.RolledBack)
		l.pairRuns("1", "1")
		if got := l.inQuarantine(); !slices.Equal(got, []string{want.bad}) ||
			r.Fault.String() != want.bad+" was quarantined" {
			t.Errorf("%s: the quarantine has %v, and the report has %q", file, got, r.Fault)
		}
		l.expect(exit.OK)
		l.pairRuns(want.base, want.service)
	}
}

// TestStatesOfTheEngineNameTheirFile checks the quarantine when a state of base fails that an SLS file of a service
// includes.
func TestStatesOfTheEngineNameTheirFile(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Engine = nil
	base := func(version, state string) {
		l.repo.Release("base", version, "production", artifacttest.Files{"version": version, "states/common.sls": state})
	}
	service := func(version string) {
		l.repo.Release("myapp", version, "testing", artifacttest.Files{"version": version,
			"salt/config/states/top.sls": "base:\n  '*':\n    - app\n", "salt/config/states/app.sls": "include:\n  - common\n" +
				"/etc/app:\n  file.directory: []\n"})
	}
	base("1", "/etc/one:\n  file.managed:\n    - makedirs: True\n    - contents: one\n")
	service("1")
	l.expect(exit.OK)
	base("2", "/etc/one:\n  file.managed:\n    - source: /etc/nothing\n")
	service("2")
	l.expect(exit.RolledBack)
	if got := l.inQuarantine(); !slices.Equal(got, []string{"base 2"}) {
		t.Errorf("the quarantine has %v", got)
	}
	for project, want := range map[string]int{"base": 1, "myapp": 0} {
		aside, _ := filepath.Glob(filepath.Join(l.Layout.Project(project).Archives(), "*", "project.failed"))
		if len(aside) != want {
			t.Errorf("%s has the failed releases %v, want %d", project, aside, want)
		}
	}
	l.expect(exit.OK)
	l.pairRuns("1", "2")
}

// TestHostErrorQuarantinesNoRelease fails a deploy with an error of a system call in the position of a file. The
// package fault has a test for each such error.
func TestHostErrorQuarantinesNoRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.engine.fails = func(what string) error {
		if what == "+2" {
			return diag.At(diag.Pos{File: "/srv/service/next/salt/config/states/app.sls"}, "it cannot be read: %v",
				syscall.EIO)
		}
		return nil
	}
	_, err := l.deploy()
	if exit.Code(err) != exit.RolledBack || len(l.quarantined()) != 0 {
		t.Errorf("exit code %d, in quarantine %v", exit.Code(err), l.inQuarantine())
	}
	l.engine.fails = nil
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

// TestBusyPackageManagerQuarantinesNoRelease has another process hold the lock.
func TestBusyPackageManagerQuarantinesNoRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.engine.fails = func(what string) error {
		if what == "+2" {
			return fmt.Errorf("pkg.installed: %w", &packages.Busy{Lock: "/var/lib/dpkg/lock", Holder: "apt-get (process 7)"})
		}
		return nil
	}
	l.expect(exit.RolledBack)
	if got := l.inQuarantine(); len(got) != 0 {
		t.Errorf("the quarantine has %v", got)
	}
	l.engine.fails = nil
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

// TestFailureWhileTheHostShutsDownIsAnInterruption has a state fail because the host shuts down.
func TestFailureWhileTheHostShutsDownIsAnInterruption(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	l.Stopping = func(context.Context) bool { return true }
	r := l.expect(exit.Interrupted)
	if r.Outcome != report.Interrupted || len(l.quarantined()) != 0 {
		t.Errorf("the outcome of the run is %q, the quarantine has %v", r.Outcome, l.inQuarantine())
	}
	l.links("1", "1", "")
}

// TestAReleaseThatRebootsTheHostEachTimeIsQuarantined shuts the host down in each deploy, including the first one of
// the host.
func TestAReleaseThatRebootsTheHostEachTimeIsQuarantined(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		l := newLab(t)
		if !first {
			l.publish("1")
			l.expect(exit.OK)
		}
		l.publish("2-broken")
		l.Stopping = func(context.Context) bool { return true }
		for range 3 {
			l.expect(exit.Interrupted)
		}
		l.Stopping = nil
		if first {
			l.expect(exit.Failed)
		} else {
			l.expect(exit.OK)
			l.links("1", "1", "")
		}
		if got := l.inQuarantine(); !slices.Equal(got, []string{"myapp 2-broken"}) {
			t.Errorf("the quarantine has %v", got)
		}
	}
}

// TestHeldReleaseIsNotReportedAsDeployed holds a host, or quarantines a release, and reads the reports of the runs
// after that.
func TestHeldReleaseIsNotReportedAsDeployed(t *testing.T) {
	t.Parallel()
	for name, withhold := range map[string]func(l *lab){
		"held": func(l *lab) {
			if err := l.Hold("until Friday"); err != nil {
				l.t.Fatal(err)
			}
			l.publish("2")
		},
		"quarantined": func(l *lab) { l.publish("2-broken"); l.expect(exit.RolledBack) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.publish("1")
			l.expect(exit.OK)
			withhold(l)
			r := l.expect(exit.OK)
			if got := notify.EventOf(r); got != notify.NoChange {
				t.Errorf("the event is %q", got)
			}
			if n := notify.NoticeOf(r); strings.Contains(n.Subject(), "2") && !strings.Contains(n.Subject(), "myapp 1") ||
				n.Left.Service.Version != "1" {
				t.Errorf("the notice is %q, and names %v", n.Subject(), n.Left)
			}
			if r.Withheld == nil || !strings.HasPrefix(r.Withheld.Service.Version, "2") {
				t.Errorf("withheld is %v", r.Withheld)
			}
			// A ledger that is rebuilt from reports has the release that runs.
			if err := os.WriteFile(l.Layout.Ledger(), []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
			s, err := l.Status()
			if err != nil || s.Deployed == nil || s.Deployed.Service.Version != "1" {
				t.Errorf("rebuilt: %v, %v", s.Deployed, err)
			}
		})
	}
}

// TestOlderAgentReadsQuarantine decodes a ledger as the earlier agent does: its entries name the pair, and the file is
// of version 1.
func TestOlderAgentReadsQuarantine(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	l.expect(exit.RolledBack)
	data, err := os.ReadFile(l.Layout.Ledger())
	if err != nil {
		t.Fatal(err)
	}
	var old struct {
		Version int
		Bad     []struct {
			Pair struct {
				Base, Service struct{ Version, Digest string }
			}
			Reason, Run string
			Again       int
		}
	}
	if err := json.Unmarshal(data, &old); err != nil {
		t.Fatal(err)
	}
	if old.Version != 1 || len(old.Bad) != 1 || old.Bad[0].Pair.Service.Version != "2-broken" ||
		old.Bad[0].Pair.Base.Version != "1" || old.Bad[0].Again != 0 {
		t.Errorf("an older agent reads %+v", old)
	}
}

// TestUserLinkInThePlaceOfAFileIsAHostError has a user put a link where a good release has a file: the release is
// rolled back and retried, and not quarantined. The result is the same if a state of the earlier release meets the same
// link.
func TestUserLinkInThePlaceOfAFileIsAHostError(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes links of another user")
	}
	t.Parallel()
	wanted := func(text string) string {
		return goodStates + "/home/ann/wanted:\n  file.managed:\n    - contents: " + text + "\n"
	}
	for name, before := range map[string]string{"the new release alone": goodStates,
		"the release before too": wanted("one")} {
		t.Run(name, func(t *testing.T) {
			l := newNativeLab(t)
			home, secret := l.Layout.Path("/home/ann"), l.Layout.Path("/root/secret")
			for _, dir := range []string{home, filepath.Dir(secret)} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			l.states("1", before)
			l.expect(exit.OK)
			link := filepath.Join(home, "wanted")
			_ = os.Remove(link)
			if err := os.Symlink("/root/secret", link); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{home, link} {
				if err := os.Lchown(path, 1000, 1000); err != nil {
					t.Fatal(err)
				}
			}
			l.states("2", wanted("two"))
			want := exit.RolledBack
			if before != goodStates {
				want = exit.RollbackFailed
			}
			r := l.expect(want)
			if bad := l.inQuarantine(); len(bad) != 0 || r.Fault == nil || r.Fault.Of != report.FaultOfHost ||
				r.Fault.Retry == nil {
				t.Errorf("the quarantine is %v, the fault is %+v", bad, r.Fault)
			}
			if !strings.Contains(r.Error, "/home/ann/wanted") || !strings.Contains(r.Error, "user 1000") {
				t.Errorf("the error is %q", r.Error)
			}
			if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
				t.Errorf("the secret is %q, %v", data, err)
			}
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
			l.expect(exit.OK)
			l.links("2", "2", "1")
		})
	}
}
