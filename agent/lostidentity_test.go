package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// givenIdentity returns a host with a deployed pair, whose identity was given on the command line.
func givenIdentity(t *testing.T) *lab {
	t.Helper()
	l := first(t, "vm")
	l.publishBase("b1")
	l.publish("1")
	if err := l.give(rootFile(t, l.repo.Root()), grains.Identity{Service: "myapp", Instance: "testing"}); err != nil {
		t.Fatal(err)
	}
	l.engine.converged = nil
	return l
}

// ticks runs the agent as the timer does, and checks the exit code.
func (l *lab) ticks(code int) {
	l.t.Helper()
	if err := l.tick(); exit.Code(err) != code {
		l.t.Fatalf("the run ended with %d (%v), want %d", exit.Code(err), err, code)
	}
}

// A host whose configuration is damaged, and has no copy, continues with the settings that the agent has saved.
func TestLostConfigurationStillConverges(t *testing.T) {
	for name, place := range map[string]func(string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a circle":    func(path string) error { return os.Symlink(path, path) },
	} {
		t.Run(name, func(t *testing.T) {
			l := givenIdentity(t)
			file := filepath.Join(t.TempDir(), "agent.yaml")
			if err := place(file); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(config.Sources{File: file, Copy: filepath.Join(t.TempDir(), "copy")})
			if err != nil || c.File.Damaged == nil {
				t.Fatalf("the configuration is damaged: %v, %v", c.File.Damaged, err)
			}
			l.Config.File = c.File
			l.publish("2")
			l.ticks(exit.Usage)
			if l.engine.last() != "b1+1" {
				t.Errorf("converged %q, want the deployed pair", l.engine.last())
			}
		})
	}
}

// inTwoChannels is givenIdentity for a release that two channels have, so that no channel determines the instance.
func inTwoChannels(t *testing.T) *lab {
	t.Helper()
	l := givenIdentity(t)
	l.repo.Release("myapp", "1", "production",
		artifacttest.Files{"version": "1", "salt/config/states/top.sls": "base: {}"})
	l.ticks(exit.OK)
	l.engine.converged = nil
	return l
}

// A host whose identity was given on the command line, and that has lost its state, continues with the identity beside
// its releases: the timer gives no arguments.
func TestSavedIdentityReplacesArguments(t *testing.T) {
	paths := map[string]func(l *lab) []string{
		"ledger, copy, current": func(l *lab) []string {
			return []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Path("/srv/projects/myapp/current")}
		},
		"ledger, copy, links, reports": func(l *lab) []string {
			links := []string{l.Layout.Path("/srv/service"), l.Layout.Path("/srv/projects/myapp/current"),
				l.Layout.Path("/srv/projects/base/current")}
			return append(links, l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports())
		},
	}
	for name, paths := range paths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := inTwoChannels(t)
			for _, path := range paths(l) {
				must(t, os.RemoveAll(path))
			}
			l.ticks(exit.OK)
			if l.engine.last() != "b1+1" {
				t.Errorf("converged %q, want the deployed pair", l.engine.converged)
			}
			l.publish("2")
			l.ticks(exit.OK)
			l.links("2", "2", "1")
		})
	}
}

// A host that has lost its whole state directory converges the releases on its disk, and does not accept the root of
// trust of the store.
func TestAnIntroducedHostWithoutItsStateConverges(t *testing.T) {
	l := inTwoChannels(t)
	must(t, os.RemoveAll(l.Layout.State()))
	must(t, os.RemoveAll(l.Layout.LedgerCopy()))
	l.publish("2")
	for range 2 {
		err := l.tick()
		if hint := diag.HintOf(err); exit.Code(err) != exit.Refused || l.engine.last() != "b1+1" ||
			!strings.Contains(hint, "corpus-agent deploy --trust-root") {
			t.Errorf("exit code %d, converged %q, %v, hint %q", exit.Code(err), l.engine.converged, err, hint)
		}
		l.engine.converged = nil
	}
	if _, err := l.Deploy(t.Context(), agent.Given{TrustRoot: rootFile(t, l.repo.Root())}, false); err != nil {
		t.Fatal(err)
	}
	l.links("2", "2", "1")
}

// The identity beside the releases is ignored on a clone of the machine, if another user wrote it, and if it is
// damaged.
func TestForeignIdentityFileIsIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(l *lab, file string) error
		notes string
	}{
		"a clone": {func(l *lab, _ string) error {
			must(l.t, os.MkdirAll(l.Layout.Path("/etc"), 0o755))
			return os.WriteFile(l.Layout.Path("/etc/machine-id"), []byte(strings.Repeat("b", 32)+"\n"), 0o444)
		}, ""},
		"a file of another user": {func(_ *lab, file string) error { return os.Chmod(file, 0o666) },
			"cannot be read from /srv/projects/myapp/.host.json"},
		"a damaged file": {func(_ *lab, file string) error { return os.WriteFile(file, []byte("{"), 0o600) },
			"cannot be read from /srv/projects/myapp/.host.json: it is damaged"},
		"a directory": {func(_ *lab, file string) error {
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o755))
		}, "cannot be read from /srv/projects/myapp/.host.json"},
		"no file": {func(_ *lab, file string) error { return os.Remove(file) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "a file of another user" && os.Geteuid() != 0 {
				t.Skip("this test needs root: the agent checks owners only as root")
			}
			l := inTwoChannels(t)
			for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports()} {
				must(t, os.RemoveAll(path))
			}
			must(t, c.spoil(l, l.Layout.Project("myapp").Who()))
			r, err := l.Deploy(t.Context(), agent.Given{}, false)
			if want := "corpus-agent deploy myapp INSTANCE --store URL, where INSTANCE may be production, " +
				"testing"; exit.Code(err) != exit.Usage || !strings.Contains(diag.HintOf(err), want) {
				t.Errorf("exit code %d, %v, hint %q, want %q in it", exit.Code(err), err, diag.HintOf(err), want)
			}
			if !strings.Contains(strings.Join(r.Notes, "\n"), c.notes) {
				t.Errorf("notes are %q, want %q", r.Notes, c.notes)
			}
			if _, err := l.Deploy(t.Context(), given("myapp", "testing"), false); err == nil {
				t.Error("the identity file was used: the store is known")
			}
		})
	}
}

// If no identity remains, the hint has the whole command.
func TestHintAfterTotalLossHasTheWholeCommand(t *testing.T) {
	l := givenIdentity(t)
	must(t, os.RemoveAll(l.Layout.State()))
	must(t, os.RemoveAll(l.Layout.Path("/srv")))
	err := l.tick()
	if want := "corpus-agent deploy SERVICE INSTANCE --store URL --trust-root FILE"; exit.Code(err) != exit.Usage ||
		!strings.Contains(diag.HintOf(err), want+" [") {
		t.Errorf("exit code %d, %v, hint %q, want %q", exit.Code(err), err, diag.HintOf(err), want)
	}
}

// A host that changes its service removes the identity of the earlier one.
func TestServiceChangeRemovesSavedIdentity(t *testing.T) {
	l := givenIdentity(t)
	l.repo.Release("other", "1", "testing",
		artifacttest.Files{"version": "other 1", "salt/config/states/top.sls": "base: {}"})
	if _, err := l.Deploy(t.Context(), given("other", "testing"), false); err != nil {
		t.Fatal(err)
	}
	for project, want := range map[string]bool{"myapp": false, "other": true} {
		if _, err := os.Stat(l.Layout.Project(project).Who()); (err == nil) != want {
			t.Errorf("%s: %v", project, err)
		}
	}
}

// TestServiceChangeWithTheSameBytes checks that the other service is deployed and can be rolled back.
func TestServiceChangeWithTheSameBytes(t *testing.T) {
	l := givenIdentity(t)
	before, err := l.ReadLedger()
	must(t, err)
	l.repo.Release("other", "1", "testing", artifacttest.Files{"version": "1", "salt/config/states/top.sls": "base: {}"})
	r, err := l.Deploy(t.Context(), given("other", "testing"), false)
	must(t, err)
	book, err := l.ReadLedger()
	must(t, err)
	if book.Good.Service.Digest != before.Good.Service.Digest {
		t.Fatalf("the digests differ: %v, %v", book.Good.Service, before.Good.Service)
	}
	if book.Previous == nil || book.Previous.Service.Project != "myapp" || notify.EventOf(r) != notify.Success {
		t.Errorf("previous is %v, the event %s", book.Previous, notify.EventOf(r))
	}
}

// A host that has lost its ledger, the copy, all reports and the identity beside its releases determines its identity
// from its links and its trust metadata.
func TestHostWithLostIdentityConverges(t *testing.T) {
	l := givenIdentity(t)
	for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports(),
		l.Layout.Project("myapp").Who()} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		l.ticks(exit.Usage) // the store is not known
		if l.engine.last() != "b1+1" {
			t.Errorf("converged %q, want the deployed pair", l.engine.last())
		}
		l.engine.converged = nil
	}
	l.Config.Store = "mem://" // as in agent.yaml
	l.publish("2")
	l.ticks(exit.Usage)
	if l.version("service/current") != "1" {
		t.Error("a host without an identity deployed a new release")
	}
	if _, err := l.Deploy(t.Context(), given("myapp", "testing"), false); err != nil {
		t.Error(err)
	}
	l.links("2", "2", "1")
	l.ticks(exit.OK)
}
