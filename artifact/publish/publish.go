// Package publish writes the metadata of a store: it reads what is signed, changes it, signs it and commits it.
//
// A Publisher holds some of the keys of the roles that package trust describes. Publisher.Change reads the store, lets a
// function edit the Next version of some roles, signs them, checks as a host does that hosts will accept the result
// (Next.Rehearse), and writes it (Publisher.Write). All files but one get names that no publisher has used, and the last
// step is a conditional write of timestamp.json. Therefore:
//
//   - readers see the store as it was before the change or as it is after it;
//   - of two publishers that meet, the later one finds the timestamp changed, reads the store again and repeats its
//     change;
//   - files that an interrupted publisher left are skipped.
//
// What there is to change is in the packages below this one: releases, projects, proofs, roots, drafts, refresh, recovery
// and collect. Package blobs has what lies in a store beside the metadata, and keyring has the keys.
package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Expiry is how long signatures are good for. A zero field means its default.
type Expiry struct {
	Timestamp time.Duration // 14 days by default
	Snapshot  time.Duration // and targets and projects: 90 days by default
	Root      time.Duration // 1 year by default
}

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

// Publisher writes one store with the keys it has.
type Publisher struct {
	Store  store.Store
	Keys   keyring.Ring
	Seen   string // directory in which the publisher keeps what it has seen of the store
	Expiry Expiry
	Now    func() time.Time // nil means time.Now
	// Hand takes what would be signed and committed, as a draft that more people sign, where it is
	// set. A change that one draft cannot hold is an error then.
	Hand func(*Draft) error
	// AtOnce lets a command take keys away although hosts refuse what only these keys have signed, until
	// others have signed it: what is right where a stolen key does more harm than hosts that stand still.
	AtOnce bool
	// New says that a name is meant which was probably typed by mistake, that of a channel or, in a Request, of a project; and
	// that a project which is added again with other keys begins without the versions that it had.
	New bool

	// Waiting are the keys of rotations that are under way, beside Keys. They sign where the store lets them.
	Waiting []keyring.Ring
}

// Keyring is the keys that a publisher signs with.
type Keyring = keyring.Ring

func (p *Publisher) Time() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// Expires is a time of expiry in the whole seconds the metadata's form asks for.
func (p *Publisher) Expires(after time.Duration) time.Time {
	return p.Time().UTC().Add(after).Truncate(time.Second)
}

// Change reads the store, lets edit make the next version of some roles, and commits it. When
// another publisher was faster, it starts again from what that one wrote.
func (p *Publisher) Change(ctx context.Context, edit func(*Next) error) error {
	return p.Retry(ctx, func() error {
		n, err := p.Read(ctx)
		if err != nil {
			return err
		}
		if err := edit(n); err != nil {
			return err
		}
		if p.Hand != nil {
			return n.Hand(ctx)
		}
		return n.commit(ctx)
	})
}

// Read verifies the store as it stands.
func (p *Publisher) Read(ctx context.Context) (*Next, error) {
	// The ETag is taken first: a change after it makes the commit fail, and that is what it is for.
	etag, err := p.TimestampETag(ctx)
	if err != nil {
		return nil, err
	}
	n, err := p.Look(ctx)
	if err != nil {
		return nil, err
	}
	n.ETag = etag
	return n, nil
}

// Look reads the store for who commits nothing to it.
func (p *Publisher) Look(ctx context.Context) (*Next, error) {
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
	return p.Onto(client, ""), nil
}

// lostFile tells an error of a store that was never set up from one of a store that has lost a file.
func (p *Publisher) lostFile(ctx context.Context, err error) error {
	if !errors.Is(err, store.ErrNotFound) || trust.SetUp(ctx, p.Store) {
		return trust.HintRebuild(err)
	}
	return diag.WithHint(err, "see that the store's URL is right; an empty store is set up with `corpus store init`")
}

// Open makes a client of the store, and refuses one that the publisher's root does not belong to.
func (p *Publisher) Open(ctx context.Context) (*trust.Client, error) {
	client, err := trust.OpenToRenew(p.Store, p.Seen)
	if err != nil {
		return nil, err
	}
	return client, client.Belongs(ctx)
}

// Onto starts the next version of what a client has verified.
func (p *Publisher) Onto(client *trust.Client, etag string) *Next {
	return &Next{Publisher: p, Client: client, ETag: etag, NewName: p.New, Roles: map[string]*trust.Role{}, Ready: map[string]ReadyFiles{}}
}

// checkClock refuses to sign with a clock that is before what was signed last: hosts would refuse
// it, or believe it for too long.
func (p *Publisher) checkClock(client *trust.Client) error {
	last, ok := trust.Created(client.Trusted().Timestamp)
	if !ok || p.Time().Add(trust.ClockTolerance).After(last) {
		return nil
	}
	return &trust.Refused{Check: trust.CheckClock, Of: trust.MetaName(tuf.RoleTimestamp),
		Err: trust.ClockError(last, p.Time())}
}

// mostSkew is how far a publisher's clock may be from the store's. Hosts bear more, see
// trust.ClockTolerance, and their clocks may be wrong the other way.
const mostSkew = 5 * time.Minute

// checkStoreClock refuses to sign with a clock that is far from the store's, where the store says what
// its clock is: hosts would refuse what is signed in their future.
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
	refused := &trust.Refused{Check: trust.CheckClock, Of: "to sign", Err: fmt.Errorf("this machine's clock (%s) is %v %s the store's (%s)",
		p.Time().UTC().Format(time.RFC3339), off.Abs(), side, store.UTC().Format(time.RFC3339))}
	return diag.WithHint(refused, "set this machine's clock (timedatectl set-ntp true, or chronyc makestep), and run the command again; nothing was signed")
}

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

// RootRole is a root file.
type RootRole = tuf.Metadata[tuf.RootType]

// lostTimestamp explains that the store has no timestamp: because nothing has been set up in it, or
// because it lost it.
func (p *Publisher) lostTimestamp(ctx context.Context, err error) error {
	if trust.SetUp(ctx, p.Store) {
		return trust.LostTimestamp(err)
	}
	return diag.WithHint(fmt.Errorf("the store is empty: %w", err), "see that the store's URL is right; set an empty store up with `corpus store init`")
}
