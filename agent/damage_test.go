package agent_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestReportsWithFutureTimesArePruned(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.KeepReports = 3
	l.publish("1")
	real := l.Now
	l.Now = func() time.Time { return time.Now().Add(50 * time.Minute) }
	ahead := l.expect(exit.OK)
	l.Now = real
	for range 4 {
		r := l.expect(exit.OK)
		last, err := l.Report("")
		if err != nil || last.ID != r.ID {
			t.Fatalf("the last report is %s, %v, want that of run %s", last.ID, err, r.ID)
		}
	}
	history, err := l.History()
	if err != nil || len(history) != 3 || history[0].Sequence != 5 {
		t.Errorf("%d reports, the newest with sequence %d, %v", len(history), history[0].Sequence, err)
	}
	for _, r := range history {
		if r.ID == ahead.ID {
			t.Errorf("the report of %s is never removed", ahead.ID)
		}
	}
}

// TestReportOfTheFutureWithoutASequence checks the same for a report of an older agent.
func TestReportOfTheFutureWithoutASequence(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	future := []byte(`{"id": "20271231T000000.000000", "command": "deploy", "service": "myapp", "exit_code": 0}`)
	if err := os.WriteFile(filepath.Join(l.Layout.Reports(), "20271231T000000.000000.json"), future, 0o600); err != nil {
		t.Fatal(err)
	}
	r := l.expect(exit.OK)
	if last, err := l.Report(""); err != nil || last.ID != r.ID {
		t.Errorf("the last report is that of %s, %v", last.ID, err)
	}
}

func TestDamagedReportDoesNotHideOthers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	first := l.expect(exit.OK)
	second := l.expect(exit.OK)
	if err := os.WriteFile(filepath.Join(l.Layout.Reports(), second.ID+".json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := l.Status(); err != nil || s.LastRun == nil || s.LastRun.ID != first.ID {
		t.Errorf("status: %+v, %v", s.LastRun, err)
	}
	if history, err := l.History(); err != nil || len(history) != 1 {
		t.Errorf("history: %d, %v", len(history), err)
	}
}

// TestRollbackWorksAfterPreviousWasDeleted removes the release that `previous` names, and then deploys one that fails.
func TestRollbackWorksAfterPreviousWasDeleted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	old, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/previous"))
	if err != nil {
		t.Fatal(err)
	}
	must(t, os.RemoveAll(old))
	l.publish("3-broken")
	r := l.expect(exit.RolledBack)
	noted(t, r, "missing on the disk")
	l.links("2", "2", "")
	l.expect(exit.OK)
	l.publish("4")
	l.expect(exit.OK)
	l.links("4", "4", "2")
}

// TestRollbackVerifiesTargetRelease changes a file of the release before.
func TestRollbackVerifiesTargetRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	old, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/previous"))
	must(t, err)
	must(t, os.Remove(filepath.Join(old, "version")))
	must(t, os.WriteFile(filepath.Join(old, "version"), []byte("x"), 0o444))
	if _, err := l.Rollback(context.Background()); exit.Code(err) != exit.Refused ||
		!strings.Contains(err.Error(), "version has other content") {
		t.Errorf("a changed release: exit code %d, %v", exit.Code(err), err)
	}
	l.links("2", "2", "x")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An item is a file or directory of the agent that a host may lose.
type item struct {
	name string
	path func(l *lab) string
	dir  bool
	root bool // it has the root of trust
	only bool // without it and without a store, the host has nothing to converge
	conf bool // it has the configuration, which only a person can restore
	// silent selects the damages that are not reported: those that leave no trace of the content, or all, if nothing is
	// lost.
	silent string
	// says is a regular expression for the report of the loss; by default it is the name of its path.
	says string
}

// The reports of losses that do not contain a path.
const (
	saysLinks   = "the links were not those|it is deployed again"
	saysRelease = "missing on the disk|differs on the disk"
	saysEntry   = "the registry's entry"
	saysTrust   = "root of trust"
)

func items() []item {
	in := func(path string) func(*lab) string { return func(l *lab) string { return l.Layout.Path(path) } }
	release := func(link string) func(*lab) string {
		return func(l *lab) string {
			dir, err := filepath.EvalSymlinks(l.Layout.Path(link))
			must(l.t, err)
			return dir
		}
	}
	newest := func(pattern string) func(*lab) string {
		return func(l *lab) string {
			all, err := filepath.Glob(l.Layout.Path(pattern))
			must(l.t, err)
			if len(all) == 0 {
				l.t.Fatalf("there is no %s", pattern)
			}
			return all[len(all)-1]
		}
	}
	return []item{
		{name: "the ledger", path: in("/var/lib/corpus/ledger.json"), says: "the ledger"},
		{name: "the configuration", path: in("/etc/corpus/agent.yaml"), conf: true},
		{name: "the configuration's copy", path: in("/srv/projects/.agent.yaml"),
			silent: "missing, empty, truncated, garbage, zero-filled, JSON without content"},
		{name: "the registry's entry", path: in("/var/lib/corpus/projects/myapp.json"), says: saysEntry},
		{name: "the registry", path: in("/var/lib/corpus/projects"), dir: true, says: saysEntry},
		{name: "the registry's copy", path: in("/srv/projects/.myapp.project.json"),
			silent: "missing, empty, truncated, garbage, zero-filled, JSON without content"},
		{name: "a request to hold", path: in("/var/lib/corpus/hold.json"), silent: "missing"},
		{name: "the ledger's copy", path: in("/srv/projects/.ledger.json"), silent: "missing",
			says: "its copy could not be read"},
		{name: "the lock", path: in("/var/lib/corpus/lock"), silent: "all"},
		{name: "the list of temporary directories", path: in("/var/lib/corpus/temporary"), silent: "all"},
		{name: "the newest report", path: newest("/var/lib/corpus/reports/*.json"), silent: "all"},
		{name: "the reports", path: in("/var/lib/corpus/reports"), dir: true, says: "reports"},
		{name: "the journal's chapter", path: newest("/var/lib/corpus/journal/host/*.journal"), silent: "all"},
		{name: "the journal", path: in("/var/lib/corpus/journal"), dir: true, silent: "missing, a directory"},
		{name: "the root of trust", path: in("/var/lib/corpus/trust/root.json"), root: true, says: saysTrust},
		{name: "the pin", path: in("/var/lib/corpus/trust/pinned"), silent: "missing", says: saysTrust},
		{name: "the timestamp", path: in("/var/lib/corpus/trust/timestamp.json"),
			says: "what this host has seen|timestamp.json"},
		{name: "the snapshot", path: in("/var/lib/corpus/trust/snapshot.json"), silent: "missing"},
		{name: "the targets", path: in("/var/lib/corpus/trust/targets.json"), silent: "missing"},
		{name: "the project's metadata", path: in("/var/lib/corpus/trust/projects/myapp.json"), silent: "missing"},
		{name: "all trust", path: in("/var/lib/corpus/trust"), dir: true, root: true, says: saysTrust},
		{name: "all that the host remembers", path: in("/var/lib/corpus"), dir: true, root: true,
			says: "restored from its copy|rebuilt"},
		{name: "what is being fetched", path: in("/var/lib/corpus/incoming"), dir: true, silent: "all"},
		{name: "the lists of releases", path: in("/var/lib/corpus/trees"), dir: true, silent: "missing, a directory"},
		{name: "the service's list", path: newest("/var/lib/corpus/trees/myapp/*"), silent: "all"},
		{name: "/srv/service", path: in("/srv/service"), says: saysLinks},
		{name: "/srv/base", path: in("/srv/base"), says: saysLinks},
		{name: "next", path: in("/srv/projects/myapp/next"), says: saysLinks},
		{name: "current", path: in("/srv/projects/myapp/current"), says: saysLinks},
		{name: "previous", path: in("/srv/projects/myapp/previous"), says: saysLinks},
		{name: "project", path: in("/srv/projects/myapp/project"), says: saysLinks},
		{name: "base's current", path: in("/srv/projects/base/current"), says: saysLinks},
		// Without the lists of releases, the agent cannot recognize another directory in its place.
		{name: "the release that runs", path: release("/srv/projects/myapp/current"), dir: true, only: true,
			says: saysRelease},
		{name: "the release before", path: release("/srv/projects/myapp/previous"), dir: true, silent: "a directory",
			says: saysLinks + "|" + saysRelease},
		{name: "base's release", path: release("/srv/projects/base/current"), dir: true, only: true, says: saysRelease},
		{name: "the releases", path: in("/srv/projects/myapp/releases"), dir: true, only: true, says: saysRelease},
		{name: "the archives", path: in("/srv/projects/myapp/archives"), dir: true, silent: "missing, a directory"},
	}
}

// A damage is a way to damage an item.
type damage struct {
	name string
	do   func(path string, content []byte) error
}

// withoutContent names the damage that leaves {}.
const withoutContent = "JSON without content"

func damages() []damage {
	write := func(change func([]byte) []byte) func(string, []byte) error {
		return func(path string, content []byte) error { return os.WriteFile(path, change(content), 0o644) }
	}
	return []damage{
		{"missing", func(string, []byte) error { return nil }},
		{"empty", write(func([]byte) []byte { return nil })},
		{"truncated", write(func(b []byte) []byte { return b[:len(b)/2] })},
		{"garbage", write(func([]byte) []byte { return []byte("\x7fgarbage{[") })},
		{"zero-filled", write(func(b []byte) []byte { return make([]byte, len(b)+1) })},
		{withoutContent, write(func([]byte) []byte { return []byte("{}\n") })},
		{"a pipe", func(path string, _ []byte) error { return syscall.Mkfifo(path, 0o600) }},
		{"a directory", func(path string, _ []byte) error { return os.MkdirAll(filepath.Join(path, "of", "others"), 0o755) }},
		{"a dangling link", func(path string, _ []byte) error { return os.Symlink("nowhere/at/all", path) }},
		{"a loop", func(path string, _ []byte) error { return os.Symlink(filepath.Base(path), path) }},
	}
}

// inflict damages an item.
func (l *lab) inflict(d damage, path string) {
	l.t.Helper()
	content, _ := os.ReadFile(path) // a directory has no content
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return // it was removed with its directory
	}
	must(l.t, os.RemoveAll(path))
	must(l.t, d.do(path, content))
}

// deployedTwice returns a host on which base 1 and versions 1 and 2 were deployed, with its store given on the command
// line.
func deployedTwice(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.publishBase("1")
	must(t, os.MkdirAll(filepath.Dir(l.Layout.Config()), 0o755))
	must(t, os.WriteFile(l.Layout.Config(), []byte(configured), 0o644))
	must(t, l.configure())
	l.Config.Store = "mem://"
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	must(t, l.SetConfiguration(context.Background(), "myapp", value.NewMap("port", 8080)))
	must(t, os.MkdirAll(l.Layout.Journal(), 0o700))
	must(t, os.WriteFile(filepath.Join(l.Layout.Journal(), "000001.journal"), []byte("corpus journal\n"), 0o600))
	must(t, os.MkdirAll(l.Layout.Project("myapp").Archives(), 0o755))
	return l
}

// configured is a configuration whose last settings are not the defaults.
const configured = "# of the tests\nmetadata:\n  enabled: false\nkeep:\n  failed: 9\n  reports: 77\n"

// configure reads the configuration as the program does.
func (l *lab) configure() (err error) {
	l.Config, err = config.Load(config.Sources{File: l.Layout.Config(), Copy: l.Layout.ConfigCopy()})
	return err
}

// duplicate returns another host with a copy of the tree and the same store.
func (l *lab) duplicate(t *testing.T) *lab {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("cp", "-a", l.Layout.Root, root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	host, copied := *l.Agent, *l
	copied.t, copied.Agent, copied.engine = t, &host, &engine{}
	host.Layout, host.Engine, host.Config.Store = layout.At(root), copied.engine, ""
	return &copied
}

// converges runs the agent until it has converged version 2, at most twice.
func (l *lab) converges(lost ...item) (notes []string) {
	l.t.Helper()
	any := func(is func(item) bool) bool { return slices.ContainsFunc(lost, is) }
	lostRoot, lostConf := any(func(w item) bool { return w.root }), any(func(w item) bool { return w.conf })
	lostAll := any(func(w item) bool { return w.only })
	lostEntry := any(func(w item) bool { return w.says == saysEntry }) &&
		any(func(w item) bool { return w.name == "the registry's copy" })
	var codes []int
	for range 2 {
		must(l.t, l.configure())
		if l.Config.KeepReports != 77 {
			l.t.Errorf("keep.reports is %d, want the configured value", l.Config.KeepReports)
		}
		r, err := l.Deploy(context.Background(), agent.Given{}, false)
		if r == nil {
			l.t.Errorf("a run ended without a report: %v", err)
			return nil
		}
		codes, notes = append(codes, exit.Code(err)), append(append(notes, r.Notes...), r.Error)
	}
	want := exit.OK
	if lostConf {
		want = exit.Usage
	}
	if lostRoot {
		want = exit.Refused
	}
	if codes[1] != want {
		l.t.Errorf("exit codes %v, want %d at the end; notes are:\n%s", codes, want, strings.Join(notes, "\n"))
	}
	if last := l.engine.last(); lostRoot && lostAll {
		return notes // only a person can repair this, as the exit code and the hint show
	} else if !lostRoot && last != "1+2" || last != "1+2" && last != "1+1" && last != "+2" && last != "+1" {
		l.t.Errorf("converged %q; notes are:\n%s", l.engine.converged, strings.Join(notes, "\n"))
	}
	if cfg, err := l.Configuration(context.Background(), "myapp"); err != nil || cfg.Value("port") != 8080 && !lostRoot &&
		!lostEntry {
		l.t.Errorf("the settings of set-configuration are lost: %v", err)
	}
	return slices.DeleteFunc(notes, func(s string) bool { return s == "" })
}

// reported checks that the reports contain the loss of an item.
func (l *lab) reported(notes []string, what item, how damage, path string) {
	l.t.Helper()
	if what.silent == "all" || strings.Contains(what.silent, how.name) {
		return
	}
	reportPattern := regexp.MustCompile(regexp.QuoteMeta(filepath.Base(path)) + "|" + cmp.Or(what.says, "^$"))
	if !slices.ContainsFunc(notes, reportPattern.MatchString) {
		l.t.Errorf("the loss of %s (%s) is not reported in:\n%s", what.name, how.name, strings.Join(notes, "\n"))
	}
}

// hidden are the pairs of losses in which one loss hides the other.
var hidden = map[string]bool{
	"previous, the release before": true,
	// The lists decide whether a directory has the content of a release.
	"all that the host remembers, base's release":        true,
	"all that the host remembers, the release that runs": true,
}

// TestEveryTwoLossesAreRepaired damages each pair of items, each pair in one of the ways.
func TestEveryTwoLossesAreRepaired(t *testing.T) {
	artifacttest.Long(t)
	all, ways, whole := items(), damages(), deployedTwice(t)
	n := 0
	for i, one := range all {
		for _, other := range all[i+1:] {
			if one.conf && other.name == "the configuration's copy" {
				continue // all settings are lost: exit code 2, as on a new host
			}
			first, second := ways[n%len(ways)], ways[n/len(ways)%len(ways)]
			n++
			if one.conf && first.name == withoutContent || other.conf && second.name == withoutContent {
				continue // a file that a person wrote, with no settings
			}
			t.Run(one.name+" "+first.name+", "+other.name+" "+second.name, func(t *testing.T) {
				t.Parallel()
				l := whole.duplicate(t)
				paths := []string{one.path(l), other.path(l)}
				l.inflict(first, paths[0])
				_, err := os.Lstat(paths[1])
				gone := err != nil // removed with the first
				l.inflict(second, paths[1])
				notes := l.converges(one, other)
				if _, err := os.Lstat(filepath.Dir(paths[0])); err == nil && !strings.HasPrefix(paths[0], paths[1]) &&
					!hidden[one.name+", "+other.name] {
					l.reported(notes, one, first, paths[0])
				}
				if !gone && !hidden[one.name+", "+other.name] {
					l.reported(notes, other, second, paths[1])
				}
			})
		}
	}
}

// TestEachSingleLossIsRepaired damages each item in each way.
func TestEachSingleLossIsRepaired(t *testing.T) {
	artifacttest.Long(t)
	whole := deployedTwice(t)
	for _, what := range items() {
		for _, how := range damages() {
			if what.conf && how.name == withoutContent {
				continue // a file that a person wrote, with no settings
			}
			t.Run(what.name+" "+how.name, func(t *testing.T) {
				t.Parallel()
				l := whole.duplicate(t)
				path := what.path(l)
				l.inflict(how, path)
				l.reported(l.converges(what), what, how, path)
			})
		}
	}
}

// TestHoldDuringARun holds and releases the host during deploys.
func TestHoldDuringARun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	during := func(do func(*agent.Agent) error) {
		l.engine.during = func(state.Request) {
			l.engine.during = nil
			outside := *l.Agent
			if err := do(&outside); err != nil {
				t.Errorf("during a run: %v", err)
			}
			if s, err := outside.Status(); err != nil || s.Running == nil {
				t.Errorf("no run was active: %+v, %v", s.Running, err)
			}
		}
	}
	held := func(want bool) {
		t.Helper()
		if s, err := l.Status(); err != nil || (s.Hold != nil) != want || want && s.Hold.Reason != "load test" {
			t.Errorf("status has the hold %+v, %v; want %t", s.Hold, err, want)
		}
	}
	hold := func(a *agent.Agent) error { return a.Hold("load test") }
	l.publish("2")
	during(hold)
	l.expect(exit.OK) // its links have moved, so the run continues
	l.links("2", "2", "1")
	held(true)
	l.publish("3")
	noted(t, l.expect(exit.OK), "held")
	l.links("2", "2", "1")
	during(func(a *agent.Agent) error {
		_, err := a.Unhold()
		return err
	})
	l.expect(exit.OK)
	held(false)
	l.expect(exit.OK)
	l.links("3", "3", "2")
	l.publish("4-broken")
	during(hold)
	l.expect(exit.RolledBack) // the run saves the ledger several times
	held(true)
	_, err := l.Unhold()
	must(t, err)
	held(false)
	if _, err := os.Lstat(l.Layout.HoldRequest()); err == nil {
		t.Error("the request still exists after it was carried out")
	}
}

// TestHoldDuringAFetch holds the host after the decision to deploy and before the links move.
func TestHoldDuringAFetch(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	outside, held := *l.Agent, false
	l.store = store.Observe(l.repo.Store, func(r store.Request) {
		if strings.Contains(r.Key, ".tar.zst") && !held {
			held = true
			must(t, outside.Hold("load test"))
		}
	})
	noted(t, l.expect(exit.OK), "held since this run began")
	if !held {
		t.Fatal("nothing was fetched")
	}
	l.links("1", "1", "")
}

// named changes the hostname.
func (l *lab) named(name string) {
	l.Hostname = func() (string, error) { return name + ".example.com", nil }
}

// machine sets the ID of the machine, as systemd does.
func (l *lab) machine(id string) {
	l.t.Helper()
	must(l.t, os.MkdirAll(l.Layout.Path("/etc"), 0o755))
	must(l.t, os.WriteFile(l.Layout.Path("/etc/machine-id"), []byte(strings.Repeat(id, 32)+"\n"), 0o644))
}

// TestRenamedHostRequiresConfirmation gives a host the name of another service, and of another instance.
func TestRenamedHostRequiresConfirmation(t *testing.T) {
	t.Parallel()
	for name, id := range map[string][2]string{"other-testing-useast1-1": {"other", "testing"},
		"myapp-production-useast1-1": {"myapp", "production"}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.machine("a")
			l.publish("1")
			l.repo.Release(id[0], "9", id[1], artifacttest.Files{"version": "9", "salt/config/states/top.sls": "base: {}"})
			l.expect(exit.OK)
			l.named(name)
			l.publish("2")
			for range 2 {
				r := l.expect(exit.Usage)
				if want := "corpus-agent deploy " + id[0] + " " + id[1]; !strings.Contains(r.Hint, want) ||
					l.engine.last() != "+1" {
					t.Errorf("converged %q, the hint is %q, want %q in it", l.engine.last(), r.Hint, want)
				}
			}
			if r, err := l.Converge(context.Background(), false); exit.Code(err) != exit.Usage || r.Instance != "testing" {
				t.Errorf("converge: %v", err)
			}
			if s, err := l.Status(); err != nil || len(s.Drift) != 0 {
				t.Errorf("status: %v, %v", s.Drift, err)
			}
			if _, err := l.Deploy(context.Background(), given(id[0], id[1]), false); err != nil {
				t.Fatal(err)
			}
			l.links("9", "9", map[bool]string{true: "1"}[id[0] == "myapp"])
			l.expect(exit.OK)
			l.links("9", "9", map[bool]string{true: "1"}[id[0] == "myapp"])
		})
	}
}

// TestClonedHostUsesItsHostname starts another machine from a copy of a host's disk.
func TestClonedHostUsesItsHostname(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.machine("a")
	l.publish("1")
	l.repo.Release("other", "9", "testing", artifacttest.Files{"version": "9", "salt/config/states/top.sls": "base: {}"})
	l.expect(exit.OK)
	l.machine("b")
	l.named("other-testing-useast1-1")
	l.expect(exit.OK)
	l.links("9", "9", "")
}

// TestUnconventionalHostnameKeepsIdentity gives a host a name without an identity.
func TestUnconventionalHostnameKeepsIdentity(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.machine("a")
	l.publish("1")
	l.expect(exit.OK)
	l.named("localhost")
	r := l.expect(exit.Usage)
	if l.engine.converged = l.engine.converged[1:]; l.engine.last() != "+1" || r.Hint == "" {
		t.Errorf("converged %q, the hint is %q", l.engine.converged, r.Hint)
	}
}
