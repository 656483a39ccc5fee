package connection_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/connection"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// newRun returns the connection of a run to a store, on a host whose files are below a temporary directory.
func newRun(t *testing.T, s store.Store, book *ledger.Ledger) (*connection.Run, *report.Report) {
	t.Helper()
	here := &site.Site{Layout: layout.At(t.TempDir()),
		Config: config.Config{Store: "mem://", FetchTimeout: time.Minute}}
	rep := &report.Report{}
	return &connection.Run{
		Site: here, Ledger: book, Record: report.Record(rep, here.Secrets()), Save: func() error { return nil },
		OpenStore: func(string) (store.Store, error) { return s, nil },
	}, rep
}

// refresh opens the store with a first root and verifies its metadata.
func refresh(t *testing.T, r *connection.Run, root []byte) error {
	t.Helper()
	client, err := r.Open(t.Context(), connection.Given{Root: root})
	if err != nil {
		return err
	}
	return client.Refresh(t.Context())
}

func TestFirstRootIsPinnedAndWrittenBackWhenItIsLost(t *testing.T) {
	repo := artifacttest.New(t)
	r, rep := newRun(t, repo.Store, &ledger.Ledger{})
	if err := refresh(t, r, nil); exit.Code(err) != exit.Usage {
		t.Errorf("a new host without a root: exit code %d, %v", exit.Code(err), err)
	}
	if err := refresh(t, r, repo.Root()); err != nil {
		t.Fatal(err)
	}
	if pinned, err := trust.Pinned(r.Site.Layout.Trust()); !pinned || err != nil {
		t.Errorf("pinned: %v, %v", pinned, err)
	}
	if err := refresh(t, r, nil); err != nil {
		t.Errorf("a later run, without a root: %v", err)
	}
	removeTrust(t, r)
	if err := r.RestoreRoot(nil); err != nil {
		t.Fatal(err)
	}
	if pinned, err := trust.Pinned(r.Site.Layout.Trust()); !pinned || err != nil ||
		!strings.Contains(strings.Join(rep.Notes, "\n"), "it was written again") {
		t.Errorf("after the loss: pinned %v, %v; notes %q", pinned, err, rep.Notes)
	}
}

// A host that has lost its root of trust never trusts the root that a store has.
func TestDeployedHostWithoutRootIsRefused(t *testing.T) {
	repo := artifacttest.New(t)
	good := ledger.Pair{Service: artifact.Release{Project: "shop", Version: "1.0"}}
	r, _ := newRun(t, repo.Store, &ledger.Ledger{Good: &good})
	var refused *trust.Refused
	if err := refresh(t, r, nil); !errors.As(err, &refused) || refused.Check != trust.CheckPin {
		t.Errorf("without a root of trust: %v", err)
	}
	if err := refresh(t, r, repo.Root()); err != nil {
		t.Errorf("with the root of the store: %v", err)
	}
}

func TestDryRunPinsNoRoot(t *testing.T) {
	repo := artifacttest.New(t)
	r, _ := newRun(t, repo.Store, &ledger.Ledger{})
	r.Test = true
	if err := refresh(t, r, repo.Root()); err != nil {
		t.Fatal(err)
	}
	if pinned, err := trust.Pinned(r.Site.Layout.Trust()); pinned || err != nil {
		t.Errorf("pinned: %v, %v", pinned, err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLimitNamesItsSetting(t *testing.T) {
	r, _ := newRun(t, nil, &ledger.Ledger{})
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	r.Site.Config.FetchTimeout = time.Millisecond
	err := r.Within(t.Context(), time.Millisecond, wait)
	if err == nil || !strings.Contains(err.Error(), "fetch.timeout") {
		t.Errorf("fetch: %v", err)
	}
	r.Site.Config.FetchTimeout = time.Minute
	err = r.Within(t.Context(), time.Millisecond, wait)
	if err == nil || !strings.Contains(err.Error(), "metadata") {
		t.Errorf("metadata: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = r.Within(ctx, time.Minute, wait)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "timeout") {
		t.Errorf("an interrupted run: %v", err)
	}
}

// removeTrust removes the directory of the root of trust.
func removeTrust(t *testing.T, r *connection.Run) {
	t.Helper()
	if err := os.RemoveAll(r.Site.Layout.Trust()); err != nil {
		t.Fatal(err)
	}
}
