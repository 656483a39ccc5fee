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

// told is a host with a deployed pair, whose identity was given on the command line.
func told(t *testing.T) *lab {
	t.Helper()
	l := first(t, "vm")
	l.publishBase("b1")
	l.publish("1")
	if err := l.give(rootFile(t, l.repo.Root()), grains.Identity{Service: "myapp", Instance: "testing"}); err != nil {
		t.Fatal(err)
	}
	l.engine.asked = nil
	return l
}

// ticks runs what the timer runs, and checks the exit code.
func (l *lab) ticks(code int) {
	l.t.Helper()
	if err := l.tick(); exit.Code(err) != code {
		l.t.Fatalf("the run ended with %d (%v), want %d", exit.Code(err), err, code)
	}
}

// A host whose configuration was replaced by something else, and has no copy, continues by what it remembers.
func TestLostConfigurationStillConverges(t *testing.T) {
	for name, place := range map[string]func(string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a circle":    func(path string) error { return os.Symlink(path, path) },
	} {
		t.Run(name, func(t *testing.T) {
			l := told(t)
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
				t.Errorf("converged %q, want what is deployed", l.engine.last())
			}
		})
	}
}

// introducedTwice is told on a host whose release two channels name, so that the instance follows from none of them.
func introducedTwice(t *testing.T) *lab {
	t.Helper()
	l := told(t)
	l.repo.Release("myapp", "1", "production",
		artifacttest.Files{"version": "1", "salt/config/states/top.sls": "base: {}"})
	l.ticks(exit.OK)
	l.engine.asked = nil
	return l
}

// A host that was told who it is, and has lost what it knows, continues by what is kept beside its releases: the
// timer's run has no arguments.
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
			l := introducedTwice(t)
			for _, path := range paths(l) {
				must(t, os.RemoveAll(path))
			}
			l.ticks(exit.OK)
			if l.engine.last() != "b1+1" {
				t.Errorf("converged %q, want what is deployed", l.engine.asked)
			}
			l.publish("2")
			l.ticks(exit.OK)
			l.links("2", "2", "1")
		})
	}
}

// A host that has lost its whole state directory converges what is on its disk: it learns no root of trust from the
// store.
func TestAnIntroducedHostWithoutItsStateConverges(t *testing.T) {
	l := introducedTwice(t)
	must(t, os.RemoveAll(l.Layout.State()))
	must(t, os.RemoveAll(l.Layout.LedgerCopy()))
	l.publish("2")
	for range 2 {
		err := l.tick()
		if hint := diag.HintOf(err); exit.Code(err) != exit.Refused || l.engine.last() != "b1+1" ||
			!strings.Contains(hint, "corpus-agent deploy --trust-root") {
			t.Errorf("exit code %d, converged %q, %v, hint %q", exit.Code(err), l.engine.asked, err, hint)
		}
		l.engine.asked = nil
	}
	if _, err := l.Deploy(t.Context(), agent.Given{TrustRoot: rootFile(t, l.repo.Root())}, false); err != nil {
		t.Fatal(err)
	}
	l.links("2", "2", "1")
}

// What is kept beside the releases of a machine says nothing of one that is a clone of it, nor does what another user
// wrote or a damaged file.
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
				t.Skip("owners mean nothing to an agent that is not root")
			}
			l := introducedTwice(t)
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
				t.Error("it knows the store")
			}
		})
	}
}

// Where nothing remains, the hint has the whole command.
func TestHintAfterTotalLossHasTheWholeCommand(t *testing.T) {
	l := told(t)
	must(t, os.RemoveAll(l.Layout.State()))
	must(t, os.RemoveAll(l.Layout.Path("/srv")))
	err := l.tick()
	if want := "corpus-agent deploy SERVICE INSTANCE --store URL --trust-root FILE"; exit.Code(err) != exit.Usage ||
		!strings.HasSuffix(diag.HintOf(err), want) {
		t.Errorf("exit code %d, %v, hint %q, want %q", exit.Code(err), err, diag.HintOf(err), want)
	}
}

// A host that becomes another service keeps nothing of the one before.
func TestServiceChangeRemovesSavedIdentity(t *testing.T) {
	l := told(t)
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

// TestServiceChangeWithTheSameBytes deploys it, and can go back.
func TestServiceChangeWithTheSameBytes(t *testing.T) {
	l := told(t)
	before, err := l.ReadLedger()
	must(t, err)
	l.repo.Release("other", "1", "testing", artifacttest.Files{"version": "1", "salt/config/states/top.sls": "base: {}"})
	r, err := l.Deploy(t.Context(), given("other", "testing"), false)
	must(t, err)
	book, err := l.ReadLedger()
	must(t, err)
	if book.Good.Service.Digest != before.Good.Service.Digest {
		t.Fatalf("the bytes are not the same: %v, %v", book.Good.Service, before.Good.Service)
	}
	if book.Previous == nil || book.Previous.Service.Project != "myapp" || notify.EventOf(r) != notify.Success {
		t.Errorf("previous is %v, the event %s", book.Previous, notify.EventOf(r))
	}
}

// A host that has lost its ledger, the copy, all reports and what is kept beside its releases still knows by its links
// and its trust what it is.
func TestHostWithLostIdentityConverges(t *testing.T) {
	l := told(t)
	for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports(),
		l.Layout.Project("myapp").Who()} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		l.ticks(exit.Usage) // it does not know the store
		if l.engine.last() != "b1+1" {
			t.Errorf("converged %q, want what is deployed", l.engine.last())
		}
		l.engine.asked = nil
	}
	l.Config.Store = "mem://" // as in agent.yaml
	l.publish("2")
	l.ticks(exit.Usage)
	if l.version("service/current") != "1" {
		t.Error("a host that does not know who it is deployed something new")
	}
	if _, err := l.Deploy(t.Context(), given("myapp", "testing"), false); err != nil {
		t.Error(err)
	}
	l.links("2", "2", "1")
	l.ticks(exit.OK)
}
