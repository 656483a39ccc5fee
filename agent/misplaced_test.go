package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// wrongKinds are the kinds of files that replace a directory or a link.
var wrongKinds = map[string]func(path string) error{
	"a file":          func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
	"a pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"a dangling link": func(path string) error { return os.Symlink("nowhere", path) },
}

// replaceBy replaces the file at a path with another kind.
func (l *lab) replaceBy(path string, put func(string) error) {
	l.t.Helper()
	must(l.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(l.t, os.RemoveAll(path))
	must(l.t, put(path))
}

// TestMisplacedConfigurationStillConverges checks that the host converges the deployed pair with the copy of its
// settings.
func TestMisplacedConfigurationStillConverges(t *testing.T) {
	whole := deployedTwice(t)
	for name, put := range wrongKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := whole.duplicate(t)
			l.replaceBy(l.Layout.Configuration(), put)
			must(t, l.configure())
			l.Config.Store = "mem://"
			l.publish("3")
			for range 2 {
				_, err := l.Deploy(t.Context(), given("", ""), false)
				if hint := diag.HintOf(err); exit.Code(err) != exit.Usage ||
					!strings.Contains(hint, "mv -T "+l.Layout.Configuration()) {
					t.Errorf("exit code %d, %v, hint %q", exit.Code(err), err, hint)
				}
			}
			if _, err := l.Converge(t.Context(), false); exit.Code(err) != exit.Usage {
				t.Errorf("converge: exit code %d, %v", exit.Code(err), err)
			}
			if l.engine.last() != "1+2" || l.Config.KeepReports != 77 {
				t.Errorf("converged %q, and keep.reports is %d", l.engine.converged, l.Config.KeepReports)
			}
			if _, err := l.Status(); err != nil {
				t.Errorf("status: %v", err)
			}
			must(t, os.Remove(l.Layout.Configuration()))
			must(t, os.Mkdir(l.Layout.Configuration(), 0o755))
			must(t, os.WriteFile(l.Layout.Config(), []byte(configured), 0o644))
			must(t, l.configure())
			l.Config.Store = "mem://"
			if _, err := l.Deploy(t.Context(), given("", ""), false); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMisplacedPillarStopsOnlyTheService checks that the service, whose states need the pillar, fails, and that base
// converges.
func TestMisplacedPillarStopsOnlyTheService(t *testing.T) {
	for name, put := range wrongKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.Config.Top = "merge"
			l.publishBase("b1")
			l.publish("1")
			l.expect(exit.OK)
			pillar := l.Layout.Project("myapp").Pillar()
			l.replaceBy(pillar, put)
			l.publish("2")
			for range 2 {
				l.engine.converged = nil
				r := l.expect(exit.Usage)
				if want := "mv -T " + pillar; l.engine.last() != "b1+" || !strings.Contains(r.Hint, want) {
					t.Errorf("converged %q, the hint is %q, want %q in it", l.engine.converged, r.Hint, want)
				}
			}
			must(t, os.Remove(pillar))
			l.expect(exit.OK)
			l.links("2", "2", "1")
		})
	}
}

// TestAPillarInTheWrongPlaceOnAHostWithoutALedger checks that base converges on a new host, and on one that has lost
// its state and links. Each run reports the error of the pillar.
func TestAPillarInTheWrongPlaceOnAHostWithoutALedger(t *testing.T) {
	for name, c := range map[string]struct {
		lost  func(l *lab) []string
		notes string
	}{
		"a new host": {nil, "base b1 converges alone, since nothing of myapp can be deployed yet: the pillar of " +
			"myapp is not rendered"},
		"without ledger, copy": {func(l *lab) []string { return []string{l.Layout.Ledger(), l.Layout.LedgerCopy()} },
			"was rebuilt from links and reports"},
		"and without reports": {func(l *lab) []string {
			return []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports()}
		}, "the reports of earlier runs are gone"},
		"and without its links": {(*lab).linksToDeployed, "base b1 converges alone, since nothing of myapp can be deployed " +
			"yet: the pillar of myapp is not rendered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.Config.Top = "merge"
			l.publishBase("b1")
			l.publish("1")
			if c.lost != nil {
				l.expect(exit.OK)
				for _, path := range c.lost(l) {
					must(t, os.RemoveAll(path))
				}
			}
			pillar := l.Layout.Project("myapp").Pillar()
			l.replaceBy(pillar, wrongKinds["a file"])
			l.publish("2")
			for run := range 2 {
				l.engine.converged = nil
				r := l.expect(exit.Usage)
				if l.engine.last() != "b1+" || !strings.Contains(r.Error, pillar+" is not a directory") ||
					!strings.Contains(r.Hint, "mv -T "+pillar) {
					t.Errorf("converged %q, %s, the hint is %q", l.engine.converged, r.Error, r.Hint)
				}
				if run == 0 {
					noted(t, r, c.notes)
				}
				if _, err := l.Converge(t.Context(), false); exit.Code(err) != exit.Usage || l.engine.last() != "b1+" {
					t.Errorf("converge: exit code %d, converged %q", exit.Code(err), l.engine.converged)
				}
			}
			if c.lost == nil { // base is deployed from its channel
				l.publishBase("b2")
				if l.expect(exit.Usage); l.engine.last() != "b2+" {
					t.Errorf("converged %q", l.engine.converged)
				}
			}
			must(t, os.Remove(pillar))
			if l.expect(exit.OK); l.version("service/current") != "2" {
				t.Errorf("current is %q", l.version("service/current"))
			}
		})
	}
}

// linksToDeployed returns all paths that name the deployed pair, except the releases and next of the service.
func (l *lab) linksToDeployed() []string {
	var links []string
	for _, link := range []string{"/srv/service/current", "/srv/base/current", "/srv/base/next"} {
		links = append(links, l.Layout.Path(link))
	}
	return append(links, l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports())
}

// TestMisplacedLinkIsMovedAside puts another kind of file in place of a link before the first deploy.
func TestMisplacedLinkIsMovedAside(t *testing.T) {
	put := map[string]func(path string) error{"a directory": func(path string) error {
		return os.MkdirAll(filepath.Join(path, "of", "others"), 0o755)
	}}
	for _, name := range []string{"a file", "a pipe"} {
		put[name] = wrongKinds[name]
	}
	links := []string{"myapp/next", "myapp/current", "myapp/previous", "myapp/project", "base/next", "base/current"}
	for name, put := range put {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.publishBase("b1")
			l.publish("1")
			for _, link := range links {
				l.replaceBy(l.Layout.Path("/srv/projects/"+link), put)
			}
			if _, err := l.Status(); err != nil {
				t.Errorf("status: %v", err)
			}
			r := l.expect(exit.OK)
			for _, link := range links {
				noted(t, r, "/srv/projects/"+link+" was not a link; it was set aside as "+filepath.Base(link)+".damaged-")
			}
			l.links("1", "1", "")
		})
	}
	for name, put := range wrongKinds {
		t.Run(name+" as a project", func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.publish("1")
			l.replaceBy(l.Layout.Path("/srv/projects/myapp"), put)
			noted(t, l.expect(exit.OK), "it was set aside as myapp.damaged-")
			l.links("1", "1", "")
		})
	}
}

// TestMisplacedParentOfTheReleases replaces /srv, and then the directory above the agent's own: commands say what is
// there and what to do, and nothing about lost data.
func TestMisplacedParentOfTheReleases(t *testing.T) {
	whole := deployedTwice(t)
	for name, put := range wrongKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := whole.duplicate(t)
			l.Config.Store = "mem://"
			srv := l.Layout.Path("/srv")
			refused := func(path string, look func() error) {
				t.Helper()
				err := look()
				if hint := diag.HintOf(err); exit.Code(err) != exit.Usage || !strings.HasPrefix(err.Error(), path+" is ") ||
					!strings.Contains(hint, path) || strings.Contains(err.Error(), "gone") {
					t.Errorf("exit code %d, %v, hint %q", exit.Code(err), err, hint)
				}
			}
			deploy := func() error { _, err := l.Deploy(t.Context(), given("", ""), false); return err }
			must(t, os.Rename(srv, srv+".kept"))
			must(t, put(srv))
			refused(srv, deploy)
			refused(srv, func() error { _, err := l.Deploy(t.Context(), given("", ""), true); return err })
			refused(srv, func() error { _, err := l.Converge(t.Context(), false); return err })
			refused(srv, func() error { _, err := l.Releases(); return err })
			refused(srv, func() error { _, err := l.Verify(t.Context()); return err })
			s, err := l.Status()
			if err != nil || len(s.Damaged) != 1 || !strings.HasPrefix(s.Damaged[0].Text, srv+" is ") || len(s.Drift) > 0 {
				t.Errorf("status lists %v and drift %v, %v", s.Damaged, s.Drift, err)
			}
			must(t, os.Remove(srv))
			must(t, os.Rename(srv+".kept", srv))
			if err := deploy(); err != nil {
				t.Error(err)
			}
			above := filepath.Dir(l.Layout.State())
			must(t, os.Rename(above, above+".kept"))
			must(t, put(above))
			refused(above, deploy)
			refused(above, func() error { return l.Hold("test") })
		})
	}
}
