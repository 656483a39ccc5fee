package agent_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// first returns a host without deploys and without a configuration: all settings are given on the command line.
func first(t *testing.T, hostname string) *lab {
	l := newLab(t)
	l.Config.Store = ""
	l.Hostname = func() (string, error) { return hostname, nil }
	return l
}

// give runs a deploy with arguments, as a person starts the first one, and tick without, as the timer does.
func (l *lab) give(root string, id grains.Identity) error {
	given := *l.Agent
	given.Config.Store = "mem://"
	_, err := given.Deploy(context.Background(), agent.Given{TrustRoot: root, Identity: id}, false)
	return err
}

func (l *lab) tick() error {
	_, err := l.Deploy(context.Background(), agent.Given{}, false)
	return err
}

// failing is a store that returns an error for each read.
type failing struct {
	store.Store
	err error
}

func (f failing) Get(context.Context, string, int64) (io.ReadCloser, store.Info, error) {
	return nil, store.Info{}, f.err
}

// If a first deploy fails because of the store, the timer retries it without arguments: the store, the root of trust
// and the identity are saved before the first request.
func TestFirstDeployThatFailedIsRepeatedWithoutArguments(t *testing.T) {
	byDigest := func(l *lab) string { return string(artifact.NewDigest(sha256.Sum256(l.repo.Root()))) }
	byFile := func(l *lab) string { return rootFile(l.t, l.repo.Root()) }
	down := func(err error) func(*lab) func() {
		return func(l *lab) func() {
			good := l.store
			l.store = failing{good, err}
			return func() { l.store = good }
		}
	}
	cases := map[string]struct {
		stop func(*lab) (mend func())
		code int
	}{
		"the store is down":          {down(store.ErrUnreachable), exit.Unreachable},
		"without credentials":        {down(fmt.Errorf("%w: no credentials", store.ErrForbidden)), exit.Unreachable},
		"the channel does not exist": {func(l *lab) func() { return func() { l.publish("1.0") } }, exit.Unreachable},
		"the clock is a year behind": {func(l *lab) func() {
			l.Now = artifacttest.Later(-365)
			return func() { l.Now = nil }
		}, exit.Refused},
	}
	for name, c := range cases {
		for how, root := range map[string]func(*lab) string{"root.json": byFile, "digest": byDigest} {
			t.Run(name+", "+how, func(t *testing.T) {
				l := first(t, "nothing-that-says-who-it-is")
				if name != "the channel does not exist" {
					l.publish("1.0")
				}
				mend := c.stop(l)
				id := grains.Identity{Service: "myapp", Instance: "testing"}
				if err := l.give(root(l), id); exit.Code(err) != c.code {
					t.Fatalf("the first deploy: exit code %d, %v, want %d", exit.Code(err), err, c.code)
				}
				if s, err := l.Status(); err != nil || !s.Bootstrapped || s.Host.Store != "mem://" || s.Host.Service != "myapp" {
					t.Errorf("status: %+v, %v", s.Host, err)
				}
				if err := l.tick(); exit.Code(err) != c.code {
					t.Errorf("a tick meanwhile: exit code %d, %v, want %d", exit.Code(err), err, c.code)
				}
				mend()
				if err := l.tick(); err != nil {
					t.Errorf("a tick afterwards: %v", err)
				}
				l.links("1.0", "1.0", "")
			})
		}
	}
}

// Later arguments replace earlier ones with which nothing was verified.
func TestLaterFirstDeployReplacesSavedArguments(t *testing.T) {
	l := first(t, "myapp-testing-useast1-1")
	l.publish("1.0")
	if err := l.give(rootFile(t, artifacttest.New(t).Root()), grains.Identity{}); exit.Code(err) != exit.Refused {
		t.Fatalf("with another root: %v", err)
	}
	good := l.store
	l.store = failing{good, store.ErrUnreachable}
	if err := l.give(rootFile(t, l.repo.Root()), grains.Identity{}); exit.Code(err) != exit.Unreachable {
		t.Fatalf("with the right root, the store down: %v", err)
	}
	l.store = good
	if err := l.tick(); err != nil {
		t.Error(err)
	}
	l.links("1.0", "1.0", "")
}

// A store that is given by mistake to a deployed host is not saved: the timer continues with the earlier one.
func TestUnreachableStoreIsNotSaved(t *testing.T) {
	l := first(t, "myapp-testing-useast1-1")
	l.publish("1.0")
	if err := l.give(rootFile(t, l.repo.Root()), grains.Identity{}); err != nil {
		t.Fatal(err)
	}
	other := *l.Agent
	other.Config.Store = "mem://other"
	other.OpenStore = func(string) (store.Store, error) { return failing{l.store, store.ErrUnreachable}, nil }
	if _, err := other.Deploy(context.Background(), agent.Given{}, false); exit.Code(err) != exit.Unreachable {
		t.Errorf("with a store that does not answer: %v", err)
	}
	if s, err := l.Status(); err != nil || s.Host.Store != "mem://" {
		t.Errorf("the saved store is %q, %v", s.Host.Store, err)
	}
}

// A store with valid metadata is saved although it has no new release, and the hint about an older store has its URL.
func TestVerifiedStoreIsSavedWithoutNewRelease(t *testing.T) {
	l := first(t, "myapp-testing-useast1-1")
	l.publish("1.0")
	if err := l.give(rootFile(t, l.repo.Root()), grains.Identity{}); err != nil {
		t.Fatal(err)
	}
	old := l.repo.Snapshot()
	l.publish("1.0.1")
	if err := l.tick(); err != nil {
		t.Fatal(err)
	}
	other := *l.Agent
	other.Config.Store = "https://agent:pass@other.example/store"
	dry, err := other.Deploy(context.Background(), agent.Given{}, true)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, dry, "@other.example/store from then on, and no longer mem://")
	for _, note := range dry.Notes {
		if !strings.Contains(note, "would") {
			t.Errorf("a dry run has a note about a change that it does not make: %s", note)
		}
	}
	r, err := other.Deploy(context.Background(), agent.Given{}, false)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "@other.example/store from now on, and no longer mem://")
	const shown = "https://<secret>@other.example/store"
	if s, err := l.Status(); err != nil || s.Host.Store != shown || s.Store != shown {
		t.Errorf("the saved store is %q, the current one %q, %v", s.Host.Store, s.Store, err)
	}
	l.repo.Restore(old)
	if err := l.tick(); exit.Code(err) != exit.Refused || !strings.Contains(diag.HintOf(err), "@other.example/store`") ||
		strings.Contains(diag.HintOf(err)+strings.Join(r.Notes, ""), "pass@") {
		t.Errorf("for a store with older metadata: %v; hint: %s", err, diag.HintOf(err))
	}
}

// A dry run of a first deploy whose channel does not exist yet pins no root of trust: the timer's unit, which requires
// one, would then run without a store and fail.
func TestDryRunOfAFirstDeployPinsNoRoot(t *testing.T) {
	l := first(t, "myapp-testing-useast1-1")
	dry := *l.Agent
	dry.Config.Store = "mem://"
	given := agent.Given{TrustRoot: rootFile(t, l.repo.Root())}
	if _, err := dry.Deploy(t.Context(), given, true); exit.Code(err) != exit.Unreachable {
		t.Errorf("without a release: %v", err)
	}
	l.publish("1.0")
	if _, err := dry.Deploy(t.Context(), given, true); err != nil {
		t.Errorf("with a release: %v", err)
	}
	if s, err := l.Status(); err != nil || s.Bootstrapped || s.Host.Store != "" {
		t.Errorf("the saved host is %+v, %v", s, err)
	}
	names, err := filepath.Glob(filepath.Join(l.Layout.State(), "*", "root.json"))
	if err != nil || len(names) > 0 {
		t.Errorf("dry runs left the files %v, %v", names, err)
	}
}

// The arguments of a dry run, and invalid arguments, are not saved.
func TestDryRunAndInvalidArgumentsAreNotSaved(t *testing.T) {
	l := first(t, "myapp-testing-useast1-1")
	l.store = failing{l.store, store.ErrUnreachable}
	dry := *l.Agent
	dry.Config.Store = "mem://"
	if _, err := dry.Deploy(context.Background(), agent.Given{TrustRoot: rootFile(t, l.repo.Root())},
		true); exit.Code(err) != exit.Unreachable {
		t.Errorf("the dry run: %v", err)
	}
	dry.OpenStore = func(string) (store.Store, error) { return nil, errors.New("no such kind of store") }
	if _, err := dry.Deploy(context.Background(), agent.Given{TrustRoot: rootFile(t, l.repo.Root())},
		false); exit.Code(err) != exit.Usage {
		t.Errorf("with an invalid store URL: %v", err)
	}
	if s, err := l.Status(); err != nil || s.Bootstrapped || s.Host.Store != "" {
		t.Errorf("the saved host is %+v, %v", s, err)
	}
	if err := l.tick(); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "no store is known") {
		t.Errorf("a tick: %v", err)
	}
}
