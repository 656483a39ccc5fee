package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// keysCount is the maximum age of cached host keys. If a key is unknown, or a signature is not valid, the keys are read
// again at once. A key that another person has forgotten stays valid here for up to this time.
const keysCount = 10 * time.Minute

// knownKeys are the host keys that earlier commands of this user have read. With them, the keys need not be listed for
// each view of the fleet.
type knownKeys struct {
	file string // "" if this user has no cache
	At   time.Time
	Keys hostkey.Registry
}

// recallKeys reads the keys from the cache.
func (p *program) recallKeys() *knownKeys {
	k := &knownKeys{}
	dir := p.cacheDir()
	if dir == "" {
		return k
	}
	k.file = filepath.Join(dir, "hosts", fmt.Sprintf("%x.json", sha256.Sum256([]byte(p.store))))
	data, err := walk.ReadFile(k.file)
	if err != nil || json.Unmarshal(data, k) != nil {
		return &knownKeys{file: k.file}
	}
	return k
}

// registry returns the cached keys, or nil if they are too old.
func (k *knownKeys) registry(now time.Time) hostkey.Registry {
	if age := now.Sub(k.At); age < 0 || age > keysCount {
		return nil
	}
	return k.Keys
}

// keep stores keys that were just read.
func (k *knownKeys) keep(p *program, keys hostkey.Registry, now time.Time) {
	k.At, k.Keys = now, keys
	if k.file == "" {
		return
	}
	data, err := json.Marshal(k)
	if err == nil {
		err = durable.MkdirAll(filepath.Dir(k.file), 0o700)
	}
	if err == nil {
		err = durable.WriteFile(k.file, data, 0o600)
	}
	if err != nil {
		p.explain("the keys of hosts were not kept in %s: %v", k.file, err)
	}
}

// forget makes the next command read the keys again, and removes the record of which key a host had first.
func (k *knownKeys) forget(p *program, host string) {
	delete(k.Keys, host)
	k.keep(p, k.Keys, time.Time{})
}

// hostKeys returns a function that reads the keys of hosts. If a host has several keys, the first one that is in the
// roster of the newest rollout is preferred, since the digest of a roster is signed; otherwise the one that earlier
// commands of this user have seen. Times of registrations do not count: a user who may write registrations can change
// them. client is only called for hosts with several keys; an error means that there is no client.
func (p *program) hostKeys(client func(context.Context) (*trust.Client, error)) fleet.Keys {
	return func(ctx context.Context, s store.Store) (hostkey.Registry, error) {
		first := p.recallKeys().Keys.First()
		known, err := hostkey.ListKeeping(ctx, s, first)
		if err != nil || !known.Disputed() {
			return known, err
		}
		known.Prefer(first)
		c, err := client(ctx)
		if err != nil {
			p.explain("names with several keys: the rosters of rollouts are not read: %v", err)
			return known, nil
		}
		rosters, err := p.rosterKeys(ctx, c, s)
		if err != nil {
			return nil, err
		}
		return prefer(ctx, s, known, append([]map[string]hostkey.Public{first}, rosters...))
	}
}

// prefer moves the keys that are in first to the front; later elements of first take precedence. It reads the keys
// again if some of a host were omitted, which may be in first.
func prefer(ctx context.Context, s store.Store, known hostkey.Registry,
	first []map[string]hostkey.Public) (_ hostkey.Registry, err error) {
	if known.Incomplete() {
		if known, err = hostkey.ListKeeping(ctx, s, first...); err != nil {
			return nil, err
		}
	}
	for _, keys := range first {
		known.Prefer(keys)
	}
	return known, nil
}

// rosterKeys returns the keys of hosts in the rosters of rollouts, the newest rollout last.
func (p *program) rosterKeys(ctx context.Context, client *trust.Client,
	s store.Store) (keys []map[string]hostkey.Public, err error) {
	list, err := client.List(ctx)
	if err != nil {
		return nil, err
	}
	type begun struct {
		ref   artifact.Ref
		start rollout.Start
	}
	var all []begun
	for _, l := range list {
		for name, pointer := range l.Channels {
			if pointer.Rollout != nil {
				all = append(all, begun{artifact.Ref{Project: l.Project, Channel: name}, *pointer.Rollout})
			}
		}
	}
	slices.SortFunc(all, func(a, b begun) int { // those of one second in an order that does not change
		return cmp.Or(a.start.At.Compare(b.start.At), cmp.Compare(a.ref.String(), b.ref.String()))
	})
	for _, b := range all {
		roster, _, err := hosts.FetchRoster(ctx, s, b.ref, b.start)
		if err != nil {
			fmt.Fprintf(p.Err, "warning: names have several keys, and which one was first is not known from the rollout of "+
				"%s: %v\n", b.ref, err)
			continue
		}
		keys = append(keys, roster.Keys())
	}
	return keys, nil
}

// readerClient returns a function that opens a client of the store for hostKeys, if there is a root of trust. done
// closes the client.
func (p *program) readerClient() (client func(context.Context) (*trust.Client, error), done func()) {
	end := func() {}
	client = func(ctx context.Context) (*trust.Client, error) {
		c, ends, err := p.reader(ctx)
		if err == nil {
			end = ends
		}
		return c, err
	}
	return client, func() { end() }
}

// publisherClient returns the client of a publisher for hostKeys.
func publisherClient(publisher *publish.Publisher) func(context.Context) (*trust.Client, error) {
	return func(ctx context.Context) (*trust.Client, error) {
		n, err := publisher.View(ctx)
		if err != nil {
			return nil, err
		}
		return n.Client, nil
	}
}

func (o fleetOptions) query(s store.Store, list []trust.Listing, known hostkey.Registry, now time.Time) fleet.Query {
	q := fleet.Query{
		Store: s, Listings: list, Now: now, Viewer: time.Now(), SilentAfter: silentAfter, Known: known,
		Project: o.project, Channel: o.channel, BehindOnly: o.behind, Silent: o.silent > 0,
	}
	if o.silent > 0 {
		q.SilentAfter = o.silent
	}
	return q
}
