package agent_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/grains"
)

// undeployingCommands are commands that deploy no release, although they may leave files on the disk.
func undeployingCommands() map[string]func(l *lab) {
	dry := func(l *lab) { dryRun(l, grains.Identity{}, exit.OK) }
	return map[string]func(l *lab){
		"a dry run": dry,
		"a dry run of a release that fails": func(l *lab) {
			l.publish("2-broken")
			dryRun(l, grains.Identity{}, exit.Failed)
		},
		"dry runs of two releases": func(l *lab) {
			dry(l)
			l.publish("2")
			dry(l)
		},
		"a dry run as another service": func(l *lab) {
			l.Hostname = func() (string, error) { return "vm", nil }
			l.repo.Release("api", "1", "testing", artifacttest.Files{"version": "1"})
			dryRun(l, grains.Identity{Service: "api", Instance: "testing"}, exit.OK)
			l.Hostname = func() (string, error) { return "myapp-testing-useast1-1.example.com", nil }
		},
		"a dry run of a project": tryProject,
		"a dry run of converge": func(l *lab) {
			_, err := l.Converge(l.t.Context(), true)
			ended(l, err, exit.Usage)
		},
		"a dry run, and a dry run of converge": func(l *lab) {
			dry(l)
			_, err := l.Converge(l.t.Context(), true)
			ended(l, err, exit.Usage)
		},
		"a fetch": fetchOnly,
		"a converge": func(l *lab) {
			_, err := l.Converge(l.t.Context(), false)
			ended(l, err, exit.Usage)
		},
		"a call": func(l *lab) {
			states := l.t.TempDir()
			must(l.t, os.WriteFile(states+"/x.sls", []byte("/etc/x: {file.managed: [{contents: x}]}\n"), 0o644))
			must(l.t, os.MkdirAll(l.Layout.Path("/etc"), 0o755))
			s, err := l.Session(l.t.Context(), inspect.Trees{States: []string{states}}, false)
			must(l.t, err)
			_, err = l.Call(l.t.Context(), s, "state.apply", []any{"x"}, nil)
			ended(l, err, exit.OK)
		},
		"a look": func(l *lab) {
			dry(l)
			_, err := l.Verify(l.t.Context())
			ended(l, err, exit.Usage)
			_ = mustStatus(l.t, l)
		},
	}
}

// dryRun runs a dry run of a deploy.
func dryRun(l *lab, id grains.Identity, code int) {
	l.t.Helper()
	_, err := l.Deploy(l.t.Context(), agent.Given{Identity: id, TrustRoot: rootFile(l.t, l.repo.Root())}, true)
	ended(l, err, code)
}

// tryProject runs a dry run of a project that is not the host's service.
func tryProject(l *lab) {
	l.repo.Release("site", "1", "testing", artifacttest.Files{"version": "1"})
	own, err := l.Project(l.t.Context(), "site")
	must(l.t, err)
	_, err = own.Deploy(l.t.Context(), agent.Given{TrustRoot: rootFile(l.t, l.repo.Root())}, true)
	ended(l, err, exit.OK)
}

// fetchOnly fetches the releases without deploying them.
func fetchOnly(l *lab) {
	only, err := procedure.ParseOnly("release-sync")
	must(l.t, err)
	_, err = l.Deploy(l.t.Context(), agent.Given{Only: only, TrustRoot: rootFile(l.t, l.repo.Root())}, false)
	ended(l, err, exit.OK)
}

func loseLedger(l *lab) {
	must(l.t, os.RemoveAll(l.Layout.Ledger()))
	must(l.t, os.RemoveAll(l.Layout.LedgerCopy()))
}

func ended(l *lab, err error, code int) {
	l.t.Helper()
	if exit.Code(err) != code {
		l.t.Fatalf("exit code %d, want %d: %v", exit.Code(err), code, err)
	}
}

// nextCommands are the commands that run after one of undeployingCommands.
func nextCommands() map[string]func(l *lab) (*report.Report, error) {
	return map[string]func(l *lab) (*report.Report, error){
		"a deploy": func(l *lab) (*report.Report, error) { return l.deploy() },
		"a deploy that fails": func(l *lab) (*report.Report, error) {
			l.engine.fails = func(string) error { return exit.WithCode(exit.Failed, fmt.Errorf("a state failed")) }
			return l.deploy()
		},
		"a dry run": func(l *lab) (*report.Report, error) {
			return l.Deploy(l.t.Context(), agent.Given{TrustRoot: rootFile(l.t, l.repo.Root())}, true)
		},
		"converge":            func(l *lab) (*report.Report, error) { return l.Converge(l.t.Context(), false) },
		"rollback":            func(l *lab) (*report.Report, error) { return l.Rollback(l.t.Context()) },
		"rollback --converge": func(l *lab) (*report.Report, error) { return l.RollbackConverge(l.t.Context(), "", false) },
		"status":              func(l *lab) (*report.Report, error) { return nil, nil },
	}
}

// seenAfter returns the output of a command and the state of the host after it.
func seenAfter(l *lab, next func(*lab) (*report.Report, error)) string {
	l.t.Helper()
	l.engine.converged = nil
	r, err := next(l)
	var b strings.Builder
	fmt.Fprintf(&b, "exit code %d: %v\nconverged %q\n", exit.Code(err), err, l.engine.converged)
	if r != nil {
		fmt.Fprintf(&b, "from %v, left %v, alone %v, quarantined %v, undo %v\nnotes %s\n", r.From, r.Left, r.BaseAlone,
			r.Quarantined, r.Undo, strings.Join(r.Notes, "\n      "))
	}
	s := mustStatus(l.t, l)
	fmt.Fprintf(&b, "deployed %v, alone %v, previous %v, drift %q, %d quarantined, others %v\n", s.Deployed, s.BaseAlone,
		s.Previous, s.Drift, len(s.Quarantined), s.Others)
	w, err := l.Why()
	must(l.t, err)
	fmt.Fprintf(&b, "why: deployed %v, nothing is deployed %v\n", w.Deployed,
		strings.HasPrefix(w.Reason, "nothing is deployed"))
	for _, project := range []string{"base", "myapp"} {
		links, err := link.Of(l.Layout.Project(project)).Read()
		must(l.t, err)
		fmt.Fprintf(&b, "%s: %v\n", project, links)
	}
	return runIDs().ReplaceAllString(strings.ReplaceAll(b.String(), l.Layout.Root, ""), "RUN")
}

func runIDs() *regexp.Regexp { return regexp.MustCompile(`\d{8}T\d{6}\.\d{6}`) }

// copyAt returns a host like l, with the same store, below another directory.
func (l *lab) copyAt(root string) *lab {
	other := &lab{t: l.t, repo: l.repo, store: l.store, engine: &engine{}}
	other.Agent = agent.New(site.Site{Layout: layout.At(root), Config: l.Config, Hostname: l.Hostname})
	other.Engine = other.engine
	other.OpenStore = func(string) (store.Store, error) { return other.store, nil }
	return other
}

// losses are the files of the agent that a host may lose.
func losses() map[string]func(l *lab) {
	return map[string]func(l *lab){
		"":              func(*lab) {},
		"a lost ledger": loseLedger,
		"a lost ledger and lost reports": func(l *lab) {
			loseLedger(l)
			must(l.t, os.RemoveAll(l.Layout.Reports()))
		},
	}
}

// compareWithout runs each command on a host after one of undeployingCommands, and compares its output with that on a
// host without it.
func compareWithout(t *testing.T, before func(l *lab), try func(l *lab), loss func(l *lab)) {
	t.Helper()
	tried := newLab(t)
	tried.publishBase("1")
	tried.publish("1")
	before(tried)
	clean := copied(t, tried.Layout.Root)
	try(tried)
	for name, next := range nextCommands() {
		got := tried.copyAt(copied(t, tried.Layout.Root))
		want := tried.copyAt(copied(t, clean))
		loss(got)
		loss(want)
		if got, want := seenAfter(got, next), seenAfter(want, next); got != want {
			t.Errorf("%s on a host without it:\n%s\non this host:\n%s", name, want, got)
		}
	}
}

// TestReadOnlyCommandsOnNewHostAreNoDeploy checks them on a new host.
func TestReadOnlyCommandsOnNewHostAreNoDeploy(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for tried, try := range undeployingCommands() {
		for lost, loss := range losses() {
			t.Run(strings.TrimSuffix(tried+", "+lost, ", "), func(t *testing.T) {
				t.Parallel()
				compareWithout(t, func(*lab) {}, try, loss)
			})
		}
	}
}

// TestReadOnlyCommandsKeepDeployedRelease checks them on a host with a deployed release.
func TestReadOnlyCommandsKeepDeployedRelease(t *testing.T) {
	t.Parallel()
	deployed := func(l *lab) {
		l.expect(exit.OK)
		l.publish("1.1")
		l.expect(exit.OK)
	}
	for tried, try := range map[string]func(l *lab){
		"a dry run": func(l *lab) {
			l.publish("3")
			dryRun(l, grains.Identity{}, exit.OK)
		},
		"a dry run of a project": tryProject,
		"a fetch": func(l *lab) {
			l.publish("3")
			fetchOnly(l)
		},
	} {
		for lost, loss := range losses() {
			t.Run(strings.TrimSuffix(tried+", "+lost, ", "), func(t *testing.T) {
				t.Parallel()
				compareWithout(t, deployed, try, loss)
			})
		}
	}
}

// TestFailedFirstDeployDoesNotCountAsDeployed checks failures of the release and of the host, also if the host loses
// files of the agent.
func TestFailedFirstDeployDoesNotCountAsDeployed(t *testing.T) {
	t.Parallel()
	for named, failed := range map[string]func(l *lab){
		"the release": func(l *lab) {
			l.publish("1-broken")
			l.expect(exit.Failed)
			l.publish("2")
		},
		"the host": func(l *lab) {
			l.publish("1")
			l.engine.fails = func(string) error { return fmt.Errorf("writing /etc/x: %w", syscall.ENOSPC) }
			_, err := l.deploy()
			if err == nil {
				l.t.Fatal("a deploy on a full disk succeeded")
			}
			l.engine.fails, l.engine.converged = nil, nil
		},
		"the release, after a dry run": func(l *lab) {
			l.publish("1-broken")
			dryRun(l, grains.Identity{}, exit.Failed)
			l.expect(exit.Failed)
			l.publish("2")
		},
	} {
		for lost, loss := range losses() {
			t.Run(strings.TrimSuffix(named+", "+lost, ", "), func(t *testing.T) {
				t.Parallel()
				l := newLab(t)
				l.publishBase("1")
				failed(l)
				loss(l)
				l.engine.converged = nil
				nothingDeployed(t, l)
			})
		}
	}
}
