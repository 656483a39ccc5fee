// Package connection opens the store of a host for one run of the agent, under the root of trust of the host.
//
// It keeps what a command gives once, the URL of the store and the first root of trust, for the runs of the timer. A
// host that has lost one of them never takes it from a store.
package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Run is the connection to the store in one run of the agent. All of its exported fields but Client and Store have to
// be set.
type Run struct {
	Site   *site.Site
	Test   bool // a dry run: neither the ledger nor a root of trust is written
	Ledger *ledger.Ledger
	Record *report.Builder

	// OpenStore opens the store of a URL.
	OpenStore func(url string) (store.Store, error)
	// Save writes the ledger.
	Save func() error
	// CheckedRoot is the root of trust whose signatures this run has verified already; nil for none.
	CheckedRoot *trust.CheckedRoot

	Store  store.Store   // with its mirrors; nil before Open
	Client *trust.Client // of Store; nil before Open

	rehearsed string // the temporary directory of trust of a dry run; "" for none
}

// Given holds what a command line says about the store and the host.
type Given struct {
	Identity grains.Identity
	Root     []byte // the first root, or its digest as text; nil for none
}

// Open opens the store and its mirrors, and pins the first root of trust if the host has none.
func (r *Run) Open(ctx context.Context, given Given) (*trust.Client, error) {
	known, err := trust.Pinned(r.Site.Layout.Trust())
	if err != nil {
		return nil, err
	}
	kept, err := trust.Given(r.Site.Layout.Trust())
	if err != nil {
		return nil, err
	}
	if r.Ledger.Runs() != nil && given.Root == nil && kept == nil && !known {
		return nil, r.noRootError(given.Identity) // even if the URL of the store is lost as well
	}
	url := r.URL()
	if url == "" {
		return nil,
			r.noStoreError(diag.StoreURL.Hint(
				errors.New("no store is known"), "give --store once, or set `store` in agent.yaml: %s",
				r.Site.Introducing(r.Ledger, given.Identity)))
	}
	s, err := r.openStores(url)
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	first, err := r.firstRoot(given)
	if err != nil {
		return nil, err
	}
	client, err := r.trusting(ctx, s, first, known)
	if err != nil {
		return nil, err
	}
	r.Store, r.Client = s, client
	remembers, err := trust.Remembers(r.Site.Layout.Trust())
	if err != nil {
		return nil, err
	}
	if r.Ledger.Good != nil && !remembers {
		r.Record.Note("the record of what this host has seen of the store is gone, so it could not detect a rollback of " +
			"the store since the last run")
	}
	return client, nil
}

// trusting returns a client of the store. It trusts the first root that is given, which is pinned once it has verified
// metadata, or else the pinned root.
func (r *Run) trusting(ctx context.Context, s store.Store, given []byte, pinned bool) (*trust.Client, error) {
	switch {
	case given != nil:
		root, err := rootGiven(ctx, s, given)
		if err != nil {
			return nil, err
		}
		dir, err := r.pinDir(pinned)
		if err != nil {
			return nil, err
		}
		return trust.OpenGiven(s, dir, root, r.Site.Time)
	case !pinned:
		return nil, r.noRootError(grains.Identity{})
	}
	return trust.OpenChecked(s, r.Site.Layout.Trust(), r.Site.Time, r.CheckedRoot)
}

// rootGiven returns the content of a root that is given by its content or by its digest.
func rootGiven(ctx context.Context, s store.Store, given []byte) ([]byte, error) {
	if digest, err := artifact.ParseDigest(string(given)); err == nil {
		return trust.FirstRoot(ctx, s, digest)
	}
	return given, nil
}

// openStores returns a store that reads from the mirrors when the store of the URL fails.
func (r *Run) openStores(url string) (store.Store, error) {
	var all []store.Store
	for _, u := range append([]string{url}, r.Site.Config.Mirrors...) {
		s, err := r.OpenStore(u)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return store.Failover(all[0], all[1:]...), nil
}

// URL returns the store that the configuration names, or the one that this host was given.
func (r *Run) URL() string {
	if r.Site.Config.Store != "" {
		return r.Site.Config.Store
	}
	return r.Ledger.Host.Store
}

// KeepStore writes the store, whose metadata has been verified, into the ledger for later runs. It does so whether the
// run succeeds or not.
func (r *Run) KeepStore() error {
	url := r.URL()
	if r.Ledger.Host.Store == url {
		return nil
	}
	if before := r.Ledger.Host.Store; before != "" {
		r.Record.Note(r.Record.DoesOrWould("this host uses the store %s from now on, and no longer %s",
			"this host would use the store %s from then on, and no longer %s"),
			redact.URLs(url), redact.URLs(before))
	}
	r.Ledger.Host.Store = url
	return r.Save()
}

// Within calls do with a context that ends after limit. If the limit ended the requests of do, the error names the
// setting fetch.timeout, or says that the metadata took too long.
func (r *Run) Within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errFetchTime)
	defer cancel()
	err := do(ctx)
	if err == nil || !errors.Is(context.Cause(ctx), errFetchTime) {
		return err
	}
	if limit < r.Site.Config.FetchTimeout {
		return diag.Store.Hint(fmt.Errorf("the store gave its metadata too slowly: it had %v: %w", limit, err),
			"look at the line between this host and its store; mirrors in agent.yaml help where one store is slow")
	}
	return diag.Timeout.Hint(fmt.Errorf("fetch.timeout (%v) ended the fetch: %w", limit, err),
		"what arrived is kept, and the next run continues from there; raise fetch.timeout in agent.yaml if one run is to "+
			"fetch all of it")
}

// errFetchTime is the cause with which Within ends a context. It wraps DeadlineExceeded, which stores recognize.
var errFetchTime = fmt.Errorf("its time is over: %w", context.DeadlineExceeded)
