package agent_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/exec"
)

// lab is a host below a temporary directory, and a store that it trusts.
type lab struct {
	*agent.Agent
	t      *testing.T
	repo   *artifacttest.Repo
	engine *engine
	store  store.Store // the store of the host; by default that of the repository
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, repo: artifacttest.New(t), engine: &engine{}}
	l.store = l.repo.Store
	l.Agent = agent.New(site.Site{
		Layout: layout.At(t.TempDir()), Config: settings(t),
		Hostname: func() (string, error) { return "myapp-testing-useast1-1.example.com", nil },
	})
	l.Engine = l.engine
	l.OpenStore = func(string) (store.Store, error) { return l.store, nil }
	return l
}

func settings(t *testing.T) config.Config {
	t.Helper()
	c, err := config.Load(config.Sources{Flags: map[string]string{"store": "mem://", "metadata.enabled": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publish publishes a version of the service. The engine fails for versions whose names contain "broken".
func (l *lab) publish(version string) {
	l.t.Helper()
	l.repo.Release("myapp", version, "testing",
		artifacttest.Files{"version": version, "salt/config/states/top.sls": "base: {}"})
}

func (l *lab) publishBase(version string) {
	l.t.Helper()
	l.repo.Release("base", version, "production", artifacttest.Files{"version": version, "states/top.sls": "base: {}"})
}

// deploy runs a deploy with a root of trust.
func (l *lab) deploy() (*report.Report, error) {
	l.t.Helper()
	root := filepath.Join(l.t.TempDir(), "root.json")
	if err := os.WriteFile(root, l.repo.Root(), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return l.Deploy(context.Background(), agent.Given{TrustRoot: root}, false)
}

// expect runs a deploy and checks its exit code.
func (l *lab) expect(code int) *report.Report {
	l.t.Helper()
	r, err := l.deploy()
	if got := exit.Code(err); got != code {
		l.t.Fatalf("deploy: exit code %d (%v), want %d", got, err, code)
	}
	return r
}

// version returns the version to which a link of a project leads; "" if the link does not exist.
func (l *lab) version(link string) string {
	l.t.Helper()
	data, err := os.ReadFile(l.Layout.Path("/srv/" + link + "/version"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	return string(data)
}

// links checks next, current and previous of the service.
func (l *lab) links(next, current, previous string) {
	l.t.Helper()
	for link, want := range map[string]string{"next": next, "current": current, "previous": previous} {
		if got := l.version("service/" + link); got != want {
			l.t.Errorf("%s is %q, want %q", link, got, want)
		}
	}
}

// noted checks that a run has a note.
func noted(t *testing.T, r *report.Report, text string) {
	t.Helper()
	if !strings.Contains(strings.Join(r.Notes, "\n"), text) {
		t.Errorf("notes are %q, want %q in them", r.Notes, text)
	}
}

// waitForFileTimes waits until a changed file gets a time after now. The kernel's file times are some milliseconds
// coarse, so a file that is changed right after a run could seem to be changed before the run's end.
func waitForFileTimes(t *testing.T) {
	t.Helper()
	now, file := time.Now(), filepath.Join(t.TempDir(), "time")
	for {
		must(t, os.WriteFile(file, nil, 0o600))
		info, err := os.Stat(file)
		must(t, err)
		if info.ModTime().After(now) {
			return
		}
		must(t, os.Remove(file))
	}
}

// engine replaces the engine: it records the converged versions, and fails if the service's version says so.
type engine struct {
	converged []string // versions that were converged, as "base+service"
	fails     func(what string) error
	during    func(state.Request)
}

func (e *engine) Compile(_ context.Context, r state.Request) (state.Program, error) {
	read := func(dir string) string {
		if dir == "" {
			return ""
		}
		data, err := r.Host.Files.ReadFile(dir + "/version")
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	return &pass{engine: e, request: r, what: read(r.Base) + "+" + read(r.Service)}, nil
}

type pass struct {
	engine  *engine
	request state.Request
	what    string
}

func (p *pass) Apply(ctx context.Context, _ exec.Observer) (state.Outcome, error) {
	p.engine.converged = append(p.engine.converged, p.what)
	if p.engine.during != nil {
		p.engine.during(p.request)
	}
	if p.engine.fails != nil {
		if err := p.engine.fails(p.what); err != nil {
			return state.Outcome{}, err
		}
	}
	switch {
	case ctx.Err() != nil:
		return state.Outcome{}, ctx.Err()
	case strings.Contains(p.what, "broken"):
		return state.Outcome{}, exit.WithCode(exit.Failed, errors.New("file.managed of Ensure something failed"))
	}
	return state.Outcome{}, nil
}

func (e *engine) last() string {
	if len(e.converged) == 0 {
		return ""
	}
	return e.converged[len(e.converged)-1]
}

// given returns the arguments with which a person states the host's identity.
func given(service, instance string) agent.Given {
	return agent.Given{Identity: grains.Identity{Service: service, Instance: instance}}
}

// soon is a timeout that no test reaches unless it fails.
const soon = time.Minute

func trustDigest(root []byte) string { return string(artifact.NewDigest(sha256.Sum256(root))) }
