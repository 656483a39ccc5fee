package rollout

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// LeaseTime is after how long the place of a host that did not give it back is free.
const LeaseTime = time.Hour

// leaseTries bounds how many places a host asks for in one run.
const leaseTries = 8

// free is the content of a place that was given back: its length in a listing says that it is free.
const free = "{}"

// Lease is a place among those hosts of a cluster that deploy at the same time.
type Lease struct {
	store store.Store
	key   string
	etag  string
}

// holder is the content of a place that is taken.
type holder struct {
	Host string `json:"host"`
	Run  string `json:"run"`
}

// Places is how many hosts of a host's cluster may deploy at the same time; 0 for any number.
func (r Rollout) Places(h plans.Host) int {
	if r.Plan.AtOnce >= plans.All {
		return 0
	}
	n := 0
	for _, m := range r.Roster.Hosts {
		if m.Cluster == h.Cluster {
			n++
		}
	}
	return r.Plan.Slots(n)
}

// Acquire takes a place for a host, with writes that fail where another host was quicker. It returns nil where none is
// free. The evidence tells which places may be.
func (r Rollout) Acquire(ctx context.Context, s store.Store, key hostkey.Key, h plans.Host, run string, e Evidence,
	now time.Time) (*Lease, error) {
	if e.newest.After(now) {
		now = e.newest
	}
	for _, name := range r.candidates(h, e, now) {
		l, err := r.take(ctx, s, key, h, r.prefix()+name, run, now)
		if err != nil {
			return nil, fmt.Errorf("taking a place among the hosts that deploy at the same time: %w", err)
		}
		if l != nil {
			return l, nil
		}
	}
	return nil, nil
}

// candidates are the places that a host asks for: free ones first, then those that others may hold.
func (r Rollout) candidates(h plans.Host, e Evidence, now time.Time) (names []string) {
	n := r.Places(h)
	var taken []string
	first := fnv.New32a()
	_, _ = first.Write([]byte(h.Name))
	for i := range n {
		slot := (int(first.Sum32()) + i) % n
		name := leasesDir + cmp.Or(h.Cluster, "-") + "/" + strconv.Itoa(slot) + suffix
		if l, ok := e.leases[name]; ok && l.size > int64(len(free)) && now.Sub(l.at) < LeaseTime {
			taken = append(taken, name)
			continue
		}
		names = append(names, name)
	}
	names = append(names, taken...)
	return names[:min(len(names), leaseTries)]
}

// take takes one place; nil if another host has it.
func (r Rollout) take(ctx context.Context, s store.Store, key hostkey.Key, h plans.Host, place, run string, now time.Time) (*Lease, error) {
	data, info, err := fetch(ctx, s, place, maxBody)
	cond := store.Condition{IfMatch: info.ETag}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrForbidden): // without the right to list, absence is forbidden
		cond = store.Condition{IfAbsent: true}
	case err != nil:
		return nil, err
	case r.isTaken(place, data, h, info, now):
		return nil, nil
	}
	if data, err = json.Marshal(holder{h.Name, run}); err == nil {
		data, err = key.Seal(place, data)
	}
	if err != nil {
		return nil, err
	}
	put, err := s.Put(ctx, place, bytes.NewReader(data), int64(len(data)), cond)
	if errors.Is(err, store.ErrPrecondition) {
		return nil, nil // another host was quicker
	}
	if err != nil {
		return nil, err
	}
	return &Lease{s, place, put.ETag}, nil
}

// isTaken reports whether a place is another host's: what is signed by no host, or ran out, holds none.
func (r Rollout) isTaken(place string, data []byte, h plans.Host, info store.Info, now time.Time) bool {
	if !info.Now.IsZero() {
		now = info.Now
	}
	var by holder
	signer, err := hostkey.Unseal(place, data)
	if err != nil || json.Unmarshal(data, &by) != nil || by.Host == h.Name {
		return false
	}
	if m, member := r.Roster.find(by.Host); member && (m.Key != signer || m.Cluster != h.Cluster) {
		return false
	}
	return now.Sub(info.Modified) < LeaseTime
}

// Release gives the place back. If it ran out and another host has it, it stays that host's.
func (l *Lease) Release(ctx context.Context) error {
	if l == nil {
		return nil
	}
	_, err := l.store.Put(ctx, l.key, bytes.NewReader([]byte(free)), int64(len(free)), store.Condition{IfMatch: l.etag})
	if err != nil && !errors.Is(err, store.ErrPrecondition) {
		return fmt.Errorf("giving back the place among the hosts that deploy at the same time: %w", err)
	}
	return nil
}
