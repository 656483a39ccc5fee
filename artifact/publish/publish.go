// Package publish writes a store: it signs, uploads, points channels and promotes.
//
// A publisher holds some keys of the roles that artifact/trust reads about and writes the next
// version of what those roles say. Everything but one file is written under a name that nobody has
// used, and the last step is a conditional write of timestamp.json. So readers see the store as it
// was or as it is after the whole change, two publishers who meet cannot undo each other (the
// later one finds the timestamp changed, reads again and repeats its change), and what a killed
// publisher left is skipped.
package publish

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Expiry is how long signatures are good for. A zero field means its default.
type Expiry struct {
	Timestamp time.Duration // 14 days by default
	Snapshot  time.Duration // and targets and projects: 90 days by default
	Root      time.Duration // 1 year by default
}

const day = 24 * time.Hour

func (e Expiry) withDefaults() Expiry {
	if e.Timestamp == 0 {
		e.Timestamp = 14 * day
	}
	if e.Snapshot == 0 {
		e.Snapshot = 90 * day
	}
	if e.Root == 0 {
		e.Root = 365 * day
	}
	return e
}

// Publisher writes one store with the keys it has.
type Publisher struct {
	Store  store.Store
	Keys   Keyring
	Seen   string // directory in which the publisher keeps what it has seen of the store
	Expiry Expiry
	Now    func() time.Time // nil means time.Now
}

func (p *Publisher) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// expires is a time of expiry in the whole seconds the metadata's form asks for.
func (p *Publisher) expires(after time.Duration) time.Time {
	return p.now().UTC().Add(after).Truncate(time.Second)
}

// attempts is how often a change is repeated when others publish at the same time.
const attempts = 20

// change reads the store, lets edit make the next version of some roles, and commits it. When
// another publisher was faster, it starts again from what that one wrote.
func (p *Publisher) change(ctx context.Context, edit func(*draft) error) error {
	for attempt := range attempts {
		d, err := p.read(ctx)
		if err != nil {
			return err
		}
		if err := edit(d); err != nil {
			return err
		}
		err = d.commit(ctx)
		if !errors.Is(err, store.ErrPrecondition) {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
	return diag.WithHint(errors.New("others kept publishing at the same time"), "run the command again")
}

// pause waits longer each time and not for the same time as the others.
func pause(ctx context.Context, attempt int) error {
	longest := min(time.Second, 10*time.Millisecond<<attempt)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(longest)):
		return nil
	}
}

// read verifies the store as it stands.
func (p *Publisher) read(ctx context.Context) (*draft, error) {
	// The ETag is taken first: a change after it makes the commit fail, and that is what it is for.
	etag, err := p.timestampETag(ctx)
	if err != nil {
		return nil, err
	}
	client, err := trust.OpenToRenew(p.Store, p.Seen)
	if err != nil {
		return nil, err
	}
	if err := client.Refresh(ctx); err != nil {
		return nil, err
	}
	return &draft{publisher: p, client: client, etag: etag, roles: map[string]*trust.Role{}}, nil
}

func (p *Publisher) timestampETag(ctx context.Context) (string, error) {
	body, info, err := p.Store.Get(ctx, trust.TimestampKey, 0)
	if errors.Is(err, store.ErrNotFound) {
		return "", diag.WithHint(fmt.Errorf("the store is empty: %w", err), "set it up with `corpus store init`")
	}
	if err != nil {
		return "", err
	}
	return info.ETag, body.Close()
}

// draft is the next version of a store.
type draft struct {
	publisher *Publisher
	client    *trust.Client
	etag      string
	roles     map[string]*trust.Role // targets and projects that change
}

// targets is the top targets role, to be changed.
func (d *draft) targets() *trust.Role {
	if role, ok := d.roles[metadata.TARGETS]; ok {
		return role
	}
	role := d.client.Trusted().Targets[metadata.TARGETS]
	d.roles[metadata.TARGETS] = role
	return role
}

// project is a project's role, to be changed. A project that never published has an empty one.
func (d *draft) project(ctx context.Context, name string) (*trust.Role, error) {
	if role, ok := d.roles[name]; ok {
		return role, nil
	}
	role, err := d.client.Project(ctx, name)
	if errors.Is(err, trust.ErrNoProject) {
		role = metadata.Targets()
		role.Signed.Version = 0
	} else if err != nil {
		return nil, err
	}
	d.roles[name] = role
	return role, nil
}

// delegates reports whether targets lets the project's key sign.
func (d *draft) delegates(project string) bool {
	delegations := d.client.Trusted().Targets[metadata.TARGETS].Signed.Delegations
	if delegations == nil {
		return false
	}
	for _, role := range delegations.Roles {
		if role.Name == project {
			return true
		}
	}
	return false
}
