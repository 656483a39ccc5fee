package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestReadOnlyCommandsOnADamagedHost runs the read-only commands on a host that has lost one of its files, in each way:
// each command answers, and each error has a hint.
func TestReadOnlyCommandsOnADamagedHost(t *testing.T) {
	whole := deployedTwice(t)
	for _, what := range items() {
		t.Run(what.name, func(t *testing.T) {
			t.Parallel()
			l := whole.duplicate(t)
			path := what.path(l)
			content, _ := os.ReadFile(path) // a directory has no content
			ask := func(damage string) {
				for name, look := range map[string]func() error{
					"status":   func() error { _, err := l.Status(); return err },
					"why":      func() error { _, err := l.Why(); return err },
					"releases": func() error { _, err := l.Releases(); return err },
					"history":  func() error { _, err := l.History(); return err },
				} {
					if err := look(); err != nil && diag.HintOf(err) == "" {
						t.Errorf("%s of a host with %s %s has no hint: %v", name, path, damage, err)
					}
				}
			}
			if _, err := os.Stat(path); err == nil && os.Geteuid() != 0 {
				must(t, os.Chmod(path, 0))
				ask("unreadable")
				must(t, os.Chmod(path, 0o700))
			}
			for _, how := range damages() {
				must(t, os.RemoveAll(path))
				must(t, how.do(path, content))
				ask(how.name)
			}
		})
	}
}

// TestHostThatLostEverythingButItsReleases checks that one hint lists all the arguments that the host needs, without
// those that are already given.
func TestHostThatLostEverythingButItsReleases(t *testing.T) {
	l := givenIdentity(t)
	must(t, os.RemoveAll(l.Layout.State()))
	must(t, os.RemoveAll(l.Layout.LedgerCopy()))
	must(t, os.RemoveAll(l.Layout.Project("myapp").Who()))
	hint := func(err error, code int, want string) {
		t.Helper()
		if exit.Code(err) != code || !strings.Contains(diag.HintOf(err), want) {
			t.Errorf("exit code %d, %v, hint %q, want %d and %q", exit.Code(err), err, diag.HintOf(err), code, want)
		}
	}
	for range 2 {
		hint(l.tick(), exit.Usage, "corpus-agent deploy myapp INSTANCE --store URL --trust-root FILE")
	}
	_, err := l.Deploy(t.Context(), given("myapp", "testing"), false)
	hint(err, exit.Refused, "corpus-agent deploy myapp testing --store URL --trust-root FILE")
	if l.engine.last() != "b1+1" {
		t.Errorf("converged %q, want the releases on the disk", l.engine.converged)
	}
	all := given("myapp", "testing")
	all.TrustRoot = rootFile(t, l.repo.Root())
	l.Config.Store = "mem://"
	l.publish("2")
	if _, err := l.Deploy(t.Context(), all, false); err != nil {
		t.Error(err)
	}
	l.links("2", "2", "1")
	l.Config.Store = ""
	l.ticks(exit.OK)
}
