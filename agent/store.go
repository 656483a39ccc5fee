package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// connect opens the store and pins the first root, if one was given.
func (r *run) connect(ctx context.Context, given Given) (*trust.Client, error) {
	known, err := trust.Pinned(r.Layout.Trust())
	if err != nil {
		return nil, err
	}
	kept, err := trust.Given(r.Layout.Trust())
	if err != nil {
		return nil, err
	}
	if r.ledger.Runs() != nil && given.TrustRoot == "" && kept == nil && !known {
		return nil, r.noRootError(given.Identity) // whatever else it has lost, it needs that first
	}
	url := r.storeURL()
	if url == "" {
		return nil,
			r.noStoreError(diag.WithHint(errors.New("no store is known"), "give --store once, or set `store` in agent.yaml: %s",
				r.Introducing(r.ledger, given.Identity)))
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
	r.store, r.client = s, client
	remembers, err := trust.Remembers(r.Layout.Trust())
	if err != nil {
		return nil, err
	}
	if r.ledger.Good != nil && !remembers {
		r.record.Note("the record of what this host has seen of the store is gone, so it could not detect a rollback of " +
			"the store since the last run")
	}
	return client, nil
}

// trusting makes a client of the store under the root that is pinned, or else under the one that was given, which is
// pinned when it has verified something.
func (r *run) trusting(ctx context.Context, s store.Store, given []byte, pinned bool) (*trust.Client, error) {
	switch {
	case given != nil:
		root, err := rootGiven(ctx, s, given)
		if err != nil {
			return nil, err
		}
		dir, err := r.trustGiven(pinned)
		if err != nil {
			return nil, err
		}
		return trust.OpenGiven(s, dir, root, r.Time)
	case !pinned:
		return nil, r.noRootError(grains.Identity{})
	}
	return trust.OpenChecked(s, r.Layout.Trust(), r.Time, r.CheckedRoot)
}

// keepTrust writes the root of trust back where it was removed while this run was under way. A host that has lost it
// ends with the error of that, unless the run failed for something else.
func (r *run) keepTrust(err error) error {
	if r.client == nil || r.test {
		return err
	}
	lost, failed := r.client.PutBack()
	switch {
	case failed != nil && err == nil:
		return exit.WithCode(exit.Refused,
			fmt.Errorf("the root of trust was removed while this run was under way, and could not be written back: %w", failed))
	case failed != nil:
		r.record.Note("the root of trust was removed while this run was under way, and could not be written back: %v", failed)
	case lost:
		r.record.Note("%s was gone, with the root of trust, while this run was under way; it was written again",
			r.Layout.Inside(r.Layout.Trust()))
	}
	return err
}

// trustGiven is the directory in which a root that was given is pinned once it has verified the store. A dry run on a
// host without one pins it for itself alone: the timer's runs would take it up, and know no store.
func (r *run) trustGiven(pinned bool) (string, error) {
	if !r.test || pinned {
		return r.Layout.Trust(), nil
	}
	if err := durable.MkdirAll(r.Layout.State(), 0o700); err != nil {
		return "", err
	}
	dir, err := durable.TempDir(r.Layout.State())
	r.rehearsed = dir
	return dir, err
}

// errLost is the reason why a host with a deployed release does not read the store: it lost the store's URL or the
// root of trust. Such a host continues with the releases on its disk.
var errLost = errors.New("this host has lost the URL of its store")

// noStoreError is the error of a host that knows no store.
func (r *run) noStoreError(err error) error {
	if r.ledger.Runs() == nil {
		return exit.WithCode(exit.Usage, err)
	}
	return exit.WithCode(exit.Usage, diag.WithHint(errLost, "%s", diag.HintOf(err)))
}

// noRootError is the error of a host without a root of trust. One that had a root before has lost it, and never takes
// another one from the store by itself: that would be to trust anything that answers there. given is who the host is,
// where the command said so.
func (r *run) noRootError(given grains.Identity) error {
	before, err := trust.Bootstrapped(r.Layout.Trust())
	if err != nil {
		return err
	}
	if r.ledger.Runs() == nil && !before {
		return exit.WithCode(exit.Usage, diag.WithHint(errors.New("this host has no root of trust"),
			"give --trust-root once: the keys/root.json of `corpus store init`, or sha256:HEX of it"))
	}
	return diag.WithHint(&trust.Refused{Check: trust.CheckPin, Of: "the store",
		Err: errors.New("this host has lost its root of trust, and it is never taken from the store")},
		"give it again, from a place that you trust: %s, where FILE is the keys/root.json of `corpus store init`, or "+
			"sha256:HEX of it", r.Introducing(r.ledger, given))
}

// openStores opens the store and its mirrors as one.
func (r *run) openStores(url string) (store.Store, error) {
	var all []store.Store
	for _, u := range append([]string{url}, r.Config.Mirrors...) {
		s, err := r.OpenStore(u)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return store.Failover(all[0], all[1:]...), nil
}

// storeURL returns the store that the configuration names, or the one that this host was given.
func (r *run) storeURL() string {
	if r.Config.Store != "" {
		return r.Config.Store
	}
	return r.ledger.Host.Store
}

// readRoot reads the root that was given: its content, or its digest. No file that a person names is read while the run
// holds its lock.
func (g *Given) readRoot() (err error) {
	if g.TrustRoot == "" {
		return nil
	}
	if strings.HasPrefix(g.TrustRoot, "sha256:") {
		digest, err := artifact.ParseDigest(g.TrustRoot)
		g.root = []byte(digest)
		return err
	}
	g.root, err = trust.ReadRoot(g.TrustRoot)
	return err
}

// firstRoot is the root that was given, by its content or by its digest: by this command, or by an earlier one whose
// store did not verify. nil where neither did.
func (r *run) firstRoot(given Given) ([]byte, error) {
	if given.TrustRoot == "" {
		return trust.Given(r.Layout.Trust())
	}
	return given.root, nil
}

// keepGiven keeps what a person said once, before the first request to the store. A first deploy whose store does not
// answer, refuses the host, or has no release for it yet is then repeated by the timer, which has no such arguments.
func (r *run) keepGiven(given Given) error {
	url := r.storeURL()
	if r.test || r.ledger.Good != nil && given.TrustRoot == "" {
		return nil
	}
	if url == "" {
		return nil // which ends the run when it asks the store
	}
	if _, err := r.openStores(url); err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	if err := r.keepRoot(given); err != nil {
		return err
	}
	if r.ledger.Good != nil {
		return nil // a store that worked is replaced by another when that has worked, too
	}
	r.ledger.Host.Store = url
	return r.save()
}

// keepRoot keeps the first root that was given, where none is pinned.
func (r *run) keepRoot(given Given) error {
	pinned, err := trust.Pinned(r.Layout.Trust())
	if pinned || err != nil || given.TrustRoot == "" {
		return err
	}
	first, err := r.firstRoot(given)
	if err != nil {
		return err
	}
	return trust.Give(r.Layout.Trust(), first)
}

// keepStore keeps the store that has verified, for later runs, whatever comes of this one.
func (r *run) keepStore() error {
	url := r.storeURL()
	if r.ledger.Host.Store == url {
		return nil
	}
	if before := r.ledger.Host.Store; before != "" {
		r.record.Note(r.orWould("this host uses the store %s from now on, and no longer %s",
			"this host would use the store %s from then on, and no longer %s"),
			redact.URLs(url), redact.URLs(before))
	}
	r.ledger.Host.Store = url
	return r.save()
}

// explainOlderStore names the store in the refusal of one that went back in time: a host may have been moved to another
// since.
func (r *run) explainOlderStore(err error) error {
	var refused *trust.Refused
	if !errors.As(err, &refused) || refused.Check != trust.CheckVersion {
		return err
	}
	url := redact.URLs(r.storeURL())
	return diag.WithHint(err, "the store %s is older than what this host has seen. To use another one: corpus-agent "+
		"deploy --store URL (or `store` in agent.yaml); else restore its newest metadata, or find out who replaced it; if "+
		"it was restored from an older copy on purpose, run `corpus refresh --rebuild --store %s`", url, url)
}

// rootGiven is the root that a person named by its content or its digest.
func rootGiven(ctx context.Context, s store.Store, given []byte) ([]byte, error) {
	if digest, err := artifact.ParseDigest(string(given)); err == nil {
		return trust.FirstRoot(ctx, s, digest)
	}
	return given, nil
}

// orWould is how a note says what the run does: a dry run only says what would be done.
func (r *run) orWould(does, would string) string {
	if r.test {
		return would
	}
	return does
}
