// Package publish writes the metadata of a store: it reads the signed metadata, changes it, signs it and commits it.
//
// A Publisher has some of the keys of the roles that package trust describes. Publisher.Change reads the store, calls a
// function that edits the Next version of some roles, signs them, checks like a host that hosts will accept the result
// (Next.Rehearse), and writes it (Publisher.Write). All files but one get names that no publisher has used, and the
// last step is a conditional write of timestamp.json. Therefore:
//
//   - readers see the store as it was before the change or as it is after it;
//   - of two concurrent publishers, the later one finds the timestamp changed, reads the store again and repeats its
//     change;
//   - files that an interrupted publisher left are skipped.
//
// The packages below this one make the changes: releases, projects, proofs, roots, drafts, refresh, recovery and
// collect. Package blobs reads and writes the other objects of a store, and keyring has the keys.
package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Expiry has the times for which signatures are valid. A zero field means its default.
type Expiry struct {
	Timestamp time.Duration // 14 days by default
	Snapshot  time.Duration // also targets and projects; 90 days by default
	Root      time.Duration // 1 year by default
}

// WithDefaults returns e with zero fields replaced by the defaults.
func (e Expiry) WithDefaults() Expiry {
	if e.Timestamp == 0 {
		e.Timestamp = trust.Lifetime(tuf.RoleTimestamp)
	}
	if e.Snapshot == 0 {
		e.Snapshot = trust.Lifetime(tuf.RoleSnapshot)
	}
	if e.Root == 0 {
		e.Root = trust.Lifetime(tuf.RoleRoot)
	}
	return e
}

// Publisher writes one store with the keys that it has.
type Publisher struct {
	Store  store.Store
	Keys   keyring.Ring
	Seen   string // directory for the metadata that the publisher has read
	Expiry Expiry
	Now    func() time.Time // nil means time.Now
	// Hand, if set, receives each change as a draft for other people to sign, instead of a commit. A change that does
	// not fit into one draft is then an error.
	Hand func(*Draft) error
	// AtOnce allows a command to remove keys although hosts will refuse metadata that only these keys have signed until
	// others sign it. That is right if a stolen key does more harm than hosts that stay on their present releases.
	AtOnce bool
	// New allows a new name that looks mistyped, of a channel or, in a releases.Request, of a project. It also allows
	// to add a removed project again with other keys; it begins without the versions that it had.
	New bool

	// Start prepares the rollout of a release to a channel that has a plan, since a publisher does not know the hosts.
	// The function keep writes the objects of the rollout, before the pointer is signed. With a nil start, all hosts
	// take the release at once. A publisher without Start cannot move a channel that has a plan.
	Continued *rollout.Start // rollout that the last move of a channel left as it is; nil for none
	Start     func(ctx context.Context, b Beginning) (start *rollout.Start, keep func(context.Context) error, err error)
	// Stale, if set, reports whether a rollout that is under way has to start again, since hosts of it have other keys.
	Stale func(ctx context.Context, b Beginning) (bool, error)
	// Who is the name of the person who moves channels, for their history. It is not verified, and is signed as given.
	Who string
	// Urgent makes rollouts that this publisher starts skip all waves.
	Urgent bool

	// Waiting has, in addition to Keys, the new keys of rotations that are under way. They sign as soon as the store
	// allows it.
	Waiting []keyring.Ring
}

// Beginning describes a rollout that is about to start.
type Beginning struct {
	Ref     artifact.Ref
	Plan    rollout.Plan
	Release artifact.Release
	Same    []string        // other versions of the project with the bytes of the release
	Before  *rollout.Before // nil if the channel is new
	Earlier *rollout.Start  // the last rollout of the channel; nil for none
	Urgent  bool
	Now     time.Time // by the store's clock if the store reports it
}

// Keyring has the keys that a publisher signs with.
type Keyring = keyring.Ring

// Time returns the time by the publisher's clock.
func (p *Publisher) Time() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// Expires returns the time at this distance from now, in whole seconds as in the metadata.
func (p *Publisher) Expires(after time.Duration) time.Time {
	return p.Time().UTC().Add(after).Truncate(time.Second)
}

// Change reads the store, calls edit to make the next version of some roles, and commits it. If another publisher
// commits first, Change reads the store again and repeats the change.
func (p *Publisher) Change(ctx context.Context, edit func(*Next) error) error {
	return p.Retry(ctx, func() error {
		n, err := p.Read(ctx)
		if err != nil {
			return err
		}
		if err := edit(n); err != nil {
			return err
		}
		for _, keep := range n.Ahead {
			if err := keep(ctx); err != nil {
				return err
			}
		}
		if p.Hand != nil {
			return n.MakeDraft(ctx)
		}
		return n.commit(ctx)
	})
}

// Read reads and verifies the store, so that a change can be committed to it.
func (p *Publisher) Read(ctx context.Context) (*Next, error) {
	// The ETag is read first, so that any later change makes the commit fail.
	etag, err := p.TimestampETag(ctx)
	if err != nil {
		return nil, err
	}
	n, err := p.View(ctx)
	if err != nil {
		return nil, err
	}
	n.ETag = etag
	return n, nil
}

// View reads and verifies the store for a caller that commits nothing to it.
func (p *Publisher) View(ctx context.Context) (*Next, error) {
	client, err := p.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := client.Refresh(ctx); err != nil {
		return nil, p.lostFile(ctx, err)
	}
	if err := p.checkClock(client); err != nil {
		return nil, err
	}
	return p.NextAfter(client, ""), nil
}

// lostFile adds a hint to an error, which depends on whether the store was never set up or has lost a file.
func (p *Publisher) lostFile(ctx context.Context, err error) error {
	if !errors.Is(err, store.ErrNotFound) || trust.SetUp(ctx, p.Store) {
		return trust.HintRebuild(err)
	}
	return diag.StoreURL.Hint(err, "see that the store's URL is right; an empty store is set up with `corpus store init`")
}

// Open returns a client of the store. It returns an error if the store does not belong to the publisher's root.
func (p *Publisher) Open(ctx context.Context) (*trust.Client, error) {
	client, err := trust.OpenToRenew(p.Store, p.Seen)
	if err != nil {
		return nil, err
	}
	return client, client.Belongs(ctx)
}

// NextAfter returns a Next for changing the metadata that a client has verified.
func (p *Publisher) NextAfter(client *trust.Client, etag string) *Next {
	return &Next{Publisher: p, Client: client, ETag: etag, NewName: p.New, Roles: map[string]*trust.Role{},
		Ready: map[string]ReadyFiles{}}
}

// checkClock returns an error if the local clock is behind the last signature: hosts would refuse the new metadata, or
// trust it for too long.
func (p *Publisher) checkClock(client *trust.Client) error {
	last, ok := trust.Created(client.Trusted().Timestamp)
	if !ok || p.Time().Add(trust.ClockTolerance).After(last) {
		return nil
	}
	return &trust.Refused{Check: trust.CheckClock, Of: trust.MetaName(tuf.RoleTimestamp),
		Err: trust.ClockError(last, p.Time())}
}

// mostSkew is the maximum difference between the clocks of a publisher and of the store. Hosts tolerate more
// (trust.ClockTolerance), but their clocks may be wrong in the other direction.
const mostSkew = 5 * time.Minute

// checkStoreClock returns an error if the local clock differs too much from the store's, if the store reports its time:
// hosts would refuse metadata that is signed in their future.
func (p *Publisher) checkStoreClock(store time.Time) error {
	if store.IsZero() {
		return nil
	}
	off, side := p.Time().Sub(store).Round(time.Second), "ahead of"
	if off.Abs() <= mostSkew {
		return nil
	}
	if off < 0 {
		side = "behind"
	}
	refused := &trust.Refused{Check: trust.CheckClock, Of: "to sign",
		Err: fmt.Errorf("this machine's clock (%s) is %v %s the store's (%s)",
			p.Time().UTC().Format(time.RFC3339), off.Abs(), side, store.UTC().Format(time.RFC3339))}
	return diag.Clock.Hint(refused,
		"nothing was signed. Either clock may be wrong: compare both times with `date -u` on another machine. If this "+
			"machine's is wrong, set it (timedatectl set-ntp true, or chronyc makestep); if the store's is, set the clock of "+
			"its server, or ask its operator. Then run the command again")
}

// TimestampETag returns the ETag of the store's timestamp.json, and checks the publisher's clock against the store's.
func (p *Publisher) TimestampETag(ctx context.Context) (string, error) {
	body, info, err := p.Store.Get(ctx, trust.TimestampKey, 0)
	if errors.Is(err, store.ErrNotFound) {
		return "", p.lostTimestamp(ctx, err)
	}
	if err != nil {
		return "", err
	}
	return info.ETag, errors.Join(body.Close(), p.checkStoreClock(info.Now))
}

// RootRole is the metadata of a root.
type RootRole = tuf.Metadata[tuf.RootType]

// lostTimestamp adds to an error the reason why the store has no timestamp: it was never set up, or it has lost the
// file.
func (p *Publisher) lostTimestamp(ctx context.Context, err error) error {
	if trust.SetUp(ctx, p.Store) {
		return trust.LostTimestamp(err)
	}
	return diag.StoreURL.Hint(fmt.Errorf("the store is empty: %w", err),
		"see that the store's URL is right; set an empty store up with `corpus store init`")
}
