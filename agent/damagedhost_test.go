package agent_test

import (
	"fmt"
	"os"
	"slices"
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
				l.showsTheRest(what, how)
			}
		})
	}
}

// showsTheRest checks that status and why show what is deployed beside a damaged item, and list damage of the trust
// metadata.
func (l *lab) showsTheRest(what item, how damage) {
	l.t.Helper()
	s, err := l.Status()
	if err != nil || s.Deployed == nil || s.Deployed.Service.Version != "2" {
		l.t.Errorf("status with %s as %s shows %v, %v", what.name, how.name, s.Deployed, err)
	}
	w, err := l.Why()
	if err != nil || len(w.Damaged) < len(s.Damaged) {
		l.t.Errorf("why with %s as %s lists %v, %v; status lists %v", what.name, how.name, w.Damaged, err, s.Damaged)
	}
	for _, d := range w.Damaged {
		if d.Hint == "" {
			l.t.Errorf("the damage %q has no hint", d.Text)
		}
	}
	shown := !slices.Contains([]string{"missing", "a directory", "a dangling link"}, how.name)
	if shown && what.name == "all trust" && len(s.Damaged) != 1 {
		l.t.Errorf("status with %s as %s lists %v, want one damage", what.name, how.name, s.Damaged)
	}
	if shown && what.name == "the project's metadata" && !strings.Contains(fmt.Sprint(s.Damaged), "myapp.json") {
		l.t.Errorf("status with %s as %s lists %v, want the file", what.name, how.name, s.Damaged)
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
