package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/elb/elbtest"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/state"
)

// The variables with which a test starts its own binary as an agent that kills itself.
const (
	childRoot     = "CORPUS_TEST_ROOT"
	childStore    = "CORPUS_TEST_STORE"
	childTrust    = "CORPUS_TEST_TRUST"
	childKill     = "CORPUS_TEST_KILL"     // number of the event at which it sends itself the signal; 0 for never
	childNative   = "CORPUS_TEST_NATIVE"   // set to apply real states
	childTerm     = "CORPUS_TEST_TERM"     // set for SIGTERM in place of SIGKILL
	childTry      = "CORPUS_TEST_TRY"      // "dry run" or "fetch" in place of a deploy
	childStep     = "CORPUS_TEST_STEP"     // ID of the state after which it sends itself the signal
	childBalancer = "CORPUS_TEST_BALANCER" // set for a host with elb.deploy; the signal is sent in its states
	childNote     = "CORPUS_TEST_NOTE"     // start of the note after which it sends itself the signal
)

func TestMain(m *testing.M) {
	if os.Getenv(childRoot) != "" {
		os.Exit(child())
	}
	// Each test makes a small host, whose heap is collected often: that would be a fifth of the processor time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		os.Setenv("GOGC", "400") // for process.CollectOften, too
	}
	os.Exit(m.Run())
}

// child runs one deploy in a separate process.
func child() int {
	at, _ := strconv.Atoi(os.Getenv(childKill))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	k := &killer{at: at, term: os.Getenv(childTerm) != "", ctx: ctx, step: os.Getenv(childStep)}
	settings, err := config.Load(config.Sources{Flags: map[string]string{"store": "file://" + os.Getenv(childStore),
		"metadata.enabled": "false"}})
	if err != nil {
		return exit.Internal
	}
	a := agent.New(site.Site{
		Layout: layout.At(os.Getenv(childRoot)), Config: settings,
		Hostname: func() (string, error) { return "myapp-testing-useast1-1", nil },
	})
	a.Sinks = []report.Sink{k}
	a.OpenStore = func(string) (store.Store, error) { return tallied(dir.New(os.Getenv(childStore))), nil }
	a.Engine = &engine{during: func(state.Request) { k.count() }}
	if os.Getenv(childBalancer) != "" {
		a.Config.ELB.Deploy, a.OpenBalancers = true, elbtest.Open
		a.Engine = &engine{during: func(state.Request) { k.kill() }}
	}
	if os.Getenv(childNative) != "" {
		a.Engine = state.Native{}
	}
	given := agent.Given{TrustRoot: os.Getenv(childTrust)}
	if os.Getenv(childTry) == "fetch" {
		if given.Only, err = procedure.ParseOnly(procedure.ReleaseSync); err != nil {
			return exit.Internal
		}
	}
	_, err = a.Deploy(ctx, given, os.Getenv(childTry) == "dry run")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return exit.Code(err)
}

// killer is a sink that sends a signal to its process at an event: SIGKILL, or SIGTERM, whose arrival it waits for.
type killer struct {
	at, seen int
	term     bool
	ctx      context.Context
	step     string
}

func (k *killer) count() {
	if k.seen++; k.seen == k.at {
		k.kill()
	}
}

func (k *killer) kill() {
	if k.term {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-k.ctx.Done()
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (k *killer) Begin(*report.Report)          { k.count() }
func (k *killer) Stage(string, string)          { k.count() }
func (k *killer) Fetching(string, int64, int64) { k.count() }
func (k *killer) Step(s report.Step) {
	if k.step != "" && s.ID == k.step {
		k.kill()
	}
	k.count()
}
func (k *killer) Hook(string, hook.Result) { k.count() }
func (k *killer) Note(text string) {
	if start := os.Getenv(childNote); start != "" && strings.HasPrefix(text, start) {
		k.kill()
	}
	k.count()
}
func (k *killer) End(*report.Report) { k.count() }

// storeOnDisk returns a store that other processes can read, and the file with its root of trust.
func storeOnDisk(t *testing.T) (repo *artifacttest.Repo, storeDir, trustRoot string) {
	t.Helper()
	storeDir = t.TempDir()
	repo = artifacttest.On(t, dir.New(storeDir))
	trustRoot = filepath.Join(t.TempDir(), "root.json")
	if err := os.WriteFile(trustRoot, repo.Root(), 0o644); err != nil {
		t.Fatal(err)
	}
	return repo, storeDir, trustRoot
}

// copied returns a copy of a host.
func copied(t *testing.T, host string) string {
	t.Helper()
	root := t.TempDir()
	if out, err := exec.Command("cp", "-a", host+"/.", root).CombinedOutput(); err != nil {
		t.Fatalf("copying: %v: %s", err, out)
	}
	return root
}

// spawn runs a child and returns its exit code, or -1 if it was killed.
func spawn(t *testing.T, root, storeDir, trustRoot string, kill int, env ...string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), childRoot+"="+root, childStore+"="+storeDir, childTrust+"="+trustRoot,
		childKill+"="+strconv.Itoa(kill))
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("starting an agent: %v: %s", err, out)
	}
	return cmd.ProcessState.ExitCode()
}

// TestKilledAtAnyMoment kills a deploy at each event. After each kill, current leads to a complete release, and the
// next run completes the deploy.
func TestKilledAtAnyMoment(t *testing.T) {
	artifacttest.Long(t)
	repo, storeDir, trustRoot := storeOnDisk(t)
	publish := func(v string) {
		repo.Release("myapp", v, "testing", artifacttest.Files{"version": v})
	}
	repo.Release("base", "1", "production", artifacttest.Files{"version": "1"})

	first, upgrade := 0, 0
	for n := 1; ; n++ { // a first deploy, killed at its nth event
		root := t.TempDir()
		if n == 1 {
			publish("1")
		}
		code := spawn(t, root, storeDir, trustRoot, n)
		if code == 0 {
			break
		}
		first++
		survived(t, root, n, "1", storeDir, trustRoot)
	}
	template := t.TempDir()
	if code := spawn(t, template, storeDir, trustRoot, 0); code != 0 {
		t.Fatalf("deploying version 1: exit code %d", code)
	}
	publish("2")
	for n := 1; ; n++ { // an upgrade, killed at its nth event
		root := copied(t, template)
		code := spawn(t, root, storeDir, trustRoot, n)
		if code == 0 {
			break
		}
		upgrade++
		survived(t, root, n, "2", storeDir, trustRoot)
	}
	if first < 8 || upgrade < 8 {
		t.Errorf("only %d and %d events were tried", first, upgrade)
	}
}

// TestKilledBeforeAnythingIsDeployed kills a first deploy, a dry run and a fetch at each event. After each kill, the
// host has no deployed pair, and reports no loss.
func TestKilledBeforeAnythingIsDeployed(t *testing.T) {
	artifacttest.Long(t)
	repo, storeDir, trustRoot := storeOnDisk(t)
	repo.Release("base", "1", "production", artifacttest.Files{"version": "1"})
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	for _, try := range []string{"deploy", "dry run", "fetch"} {
		for n := 1; ; n++ {
			l := newLab(t)
			l.repo, l.store = repo, repo.Store
			ended := spawn(t, l.Layout.Root, storeDir, trustRoot, n, childTry+"="+try) != -1
			if book, err := os.ReadFile(l.Layout.Ledger()); err == nil && strings.Contains(string(book), `"good"`) {
				break // the deploy was complete
			}
			t.Run(fmt.Sprintf("%s, event %d", try, n), func(t *testing.T) { nothingDeployed(t, l) })
			if ended {
				break
			}
		}
	}
}

// nothingDeployed checks that a host has nothing deployed, and that the next deploy is a first one.
func nothingDeployed(t *testing.T, l *lab) {
	t.Helper()
	if s := mustStatus(t, l); s.Deployed != nil || s.Previous != nil || len(s.Drift) > 0 {
		t.Errorf("status: deployed %v, previous %v, drift %q", s.Deployed, s.Previous, s.Drift)
	}
	for name, next := range map[string]func() (*report.Report, error){
		"converge":            func() (*report.Report, error) { return l.Converge(t.Context(), false) },
		"rollback":            func() (*report.Report, error) { return l.Rollback(t.Context()) },
		"rollback --converge": func() (*report.Report, error) { return l.RollbackConverge(t.Context(), "", false) },
	} {
		if r, err := next(); exit.Code(err) != exit.Usage || r.Left != nil || reportsLoss(r) || len(l.engine.converged) > 0 {
			t.Errorf("%s: %v, left %v, notes %q, converged %q", name, err, r.Left, r.Notes, l.engine.converged)
		}
	}
	r, err := l.deploy()
	if err != nil || r.From != nil || reportsLoss(r) {
		t.Errorf("deploy: %v, from %v, notes %q", err, r.From, r.Notes)
	}
	_, service, _ := strings.Cut(l.engine.last(), "+")
	l.links(service, service, "")
}

// reportsLoss reports whether a run has a note about a loss.
func reportsLoss(r *report.Report) bool {
	return slices.ContainsFunc(r.Notes, func(note string) bool {
		return strings.Contains(note, "gone") || strings.Contains(note, "rebuilt") || strings.Contains(note, "corrected")
	})
}

// TestTerminatedAtAnyMoment ends an upgrade with SIGTERM at each event. Afterwards the links are those before or after
// the deploy, no release is quarantined, and the next run deploys.
func TestTerminatedAtAnyMoment(t *testing.T) {
	repo, storeDir, trustRoot := storeOnDisk(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	template := t.TempDir()
	if code := spawn(t, template, storeDir, trustRoot, 0); code != 0 {
		t.Fatalf("deploying version 1: exit code %d", code)
	}
	repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2"})
	interrupted := 0
	for n := 1; n < 100; n++ {
		root := copied(t, template)
		code := spawn(t, root, storeDir, trustRoot, n, childTerm+"=1")
		next, _ := os.ReadFile(filepath.Join(root, "srv/service/next/version"))
		current, _ := os.ReadFile(filepath.Join(root, "srv/service/current/version"))
		want := "1"
		switch code {
		case exit.Interrupted:
			interrupted++
		case exit.OK:
			want = "2"
		default:
			t.Errorf("terminated at event %d: exit code %d", n, code)
		}
		if string(next) != want || string(current) != want {
			t.Errorf("terminated at event %d, exit code %d: next is %q and current %q, want %s", n, code, next, current, want)
		}
		survived(t, root, n, "2", storeDir, trustRoot)
		if code == exit.OK {
			break
		}
	}
	if interrupted < 5 {
		t.Errorf("only %d events were tried", interrupted)
	}
}

// survived checks a host whose agent was killed, and completes the deploy in the next run.
func survived(t *testing.T, root string, n int, want, storeDir, trustRoot string) {
	t.Helper()
	current := filepath.Join(root, "srv/service/current")
	if _, err := os.Lstat(current); err == nil {
		if v, err := os.ReadFile(filepath.Join(current, "version")); err != nil || len(v) != 1 {
			t.Errorf("killed at event %d: current has %q, %v", n, v, err)
		}
	}
	if code := spawn(t, root, storeDir, trustRoot, 0); code != 0 {
		t.Errorf("killed at event %d: the next run ends with exit code %d", n, code)
	}
	for _, link := range []string{"next", "current"} {
		if v, err := os.ReadFile(filepath.Join(root, "srv/service", link, "version")); err != nil || string(v) != want {
			t.Errorf("killed at event %d: after the next run %s has %q, %v, want %q", n, link, v, err, want)
		}
	}
	if left := leftovers(t, root); left != "" {
		t.Errorf("killed at event %d: after the next run these files remain: %s", n, left)
	}
}

// leftovers lists temporary files.
func leftovers(t *testing.T, root string) string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".corpus-tmp") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(found, " ")
}

// TestThreeInterruptedDeploysQuarantine kills the same deploy three times.
func TestThreeInterruptedDeploysQuarantine(t *testing.T) {
	repo, storeDir, trustRoot := storeOnDisk(t)
	root := t.TempDir()
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	if code := spawn(t, root, storeDir, trustRoot, 0); code != 0 {
		t.Fatalf("deploying version 1: exit code %d", code)
	}
	repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2"})
	at := convergeEvent(t, root, storeDir, trustRoot)
	for attempt := range 3 {
		if code := spawn(t, root, storeDir, trustRoot, at); code != -1 {
			t.Fatalf("attempt %d ended with exit code %d, want the code of a killed process", attempt+1, code)
		}
	}
	if code := spawn(t, root, storeDir, trustRoot, 0); code != 0 {
		t.Errorf("the run after three kills: exit code %d, want the good release converged", code)
	}
	if v, err := os.ReadFile(filepath.Join(root, "srv/service/current/version")); err != nil || string(v) != "1" {
		t.Errorf("current has %q, %v, want the earlier release", v, err)
	}
}

// threeFiles are states between which a run can be killed.
const threeFiles = "/etc/app/a: {file.managed: [{contents: new}]}\n/etc/app/b: {file.managed: [{contents: new}]}\n" +
	"/etc/app/c: {file.managed: [{contents: new}]}\n"

// TestInterruptionsAtOneStepQuarantine kills a deploy repeatedly in one state, as a state does that shuts the host
// down, and at different states, as a power failure does.
func TestInterruptionsAtOneStepQuarantine(t *testing.T) {
	for name, c := range map[string]struct {
		cuts []string
		want string // the version that runs at the end
	}{
		"one state":             {[]string{"b", "b", "b"}, "1"},
		"different states":      {[]string{"a", "b", "c", "a", "b", "c"}, "2"},
		"two in one state":      {[]string{"b", "b", "c", "b", "b"}, "2"},
		"after the first state": {[]string{"a", "c", "c", "c"}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			repo, storeDir, trustRoot := storeOnDisk(t)
			root := t.TempDir()
			repo.Release("myapp", "1", "testing", stateFiles("1", goodStates))
			if code := spawn(t, root, storeDir, trustRoot, 0, childNative+"=1"); code != 0 {
				t.Fatalf("deploying version 1: exit code %d", code)
			}
			repo.Release("myapp", "2", "testing", stateFiles("2", threeFiles))
			old(t, root, "a", "b", "c")
			for i, state := range c.cuts {
				old(t, root, state) // so that the state acts each time
				if code := spawn(t, root, storeDir, trustRoot, 0, childNative+"=1", childStep+"=/etc/app/"+state); code != -1 {
					t.Fatalf("kill %d ended with exit code %d", i+1, code)
				}
			}
			if code := spawn(t, root, storeDir, trustRoot, 0, childNative+"=1"); code != 0 {
				t.Errorf("the run after the kills: exit code %d", code)
			}
			if v, err := os.ReadFile(filepath.Join(root, "srv/service/current/version")); err != nil ||
				strings.TrimSpace(string(v)) != c.want {
				t.Errorf("current has %q, %v, want %s", v, err, c.want)
			}
			if file, err := os.ReadFile(filepath.Join(root, "var/lib/corpus/ledger.json")); err != nil ||
				strings.Contains(string(file), "3 times in a row in file.managed /etc/app/") != (c.want == "1") {
				t.Errorf("the ledger is %s, %v", file, err)
			}
		})
	}
}

// old gives files of the application an older content.
func old(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(root, "etc/app", name), []byte("old\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// convergeEvent returns the number of the event at which the states of an upgrade run, found on a copy of the host.
func convergeEvent(t *testing.T, root, storeDir, trustRoot string) int {
	t.Helper()
	for n := 1; n < 100; n++ {
		copyAt := copied(t, root)
		if spawn(t, copyAt, storeDir, trustRoot, n) == 0 {
			t.Fatal("the upgrade did not reach its states")
		}
		next, _ := os.ReadFile(filepath.Join(copyAt, "srv/service/next/version"))
		if string(next) == "2" {
			return n + 1
		}
	}
	return 0
}
