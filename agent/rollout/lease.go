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
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// LeaseTime is the time after which the place of a host that did not release it is free.
const LeaseTime = time.Hour

// leaseTries bounds how many places a host tries to take in one run.
const leaseTries = 8

// free is the content of a released place. Its length in a listing shows that the place is free.
const free = "{}"

// RenewEvery is the interval at which a host that is still deploying renews its place.
const RenewEvery = LeaseTime / 4

// renewTime bounds one renewal.
const renewTime = time.Minute

// Lease is a place among the hosts of a cluster that deploy at the same time.
type Lease struct {
	store store.Store
	key   string
	etag  string
	held  []byte // the content of the place while this host has it

	ended, done chan struct{} // of Keep; nil without it
}

// notLease returns why an object below leasesDir is no lease, as far as a listing shows it; "" if it may be one.
func notLease(name string, size int64) string {
	cluster, file, _ := strings.Cut(strings.TrimPrefix(name, leasesDir), "/")
	slot, isJSON := strings.CutSuffix(file, suffix)
	n, err := strconv.ParseUint(slot, 10, 32)
	switch {
	case !isJSON || err != nil || strconv.FormatUint(n, 10) != slot,
		cluster != "-" && artifact.CheckHost(cluster) != nil:
		return "it is not the name of a place"
	case size > maxBody:
		return "it is longer than a lease, so it holds no place"
	}
	return ""
}

// holder is the content of a place that is taken.
type holder struct {
	Host string `json:"host"`
	Run  string `json:"run"`
}

// Places returns how many hosts of a host's cluster may deploy at the same time; 0 means any number.
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

// Acquire takes a place for a host, with conditional writes that fail if another host took it first. It returns nil if
// no place is free, and the hosts that hold the places that it tried. The evidence shows which places may be free.
func (r Rollout) Acquire(ctx context.Context, s store.Store, key hostkey.Key, h plans.Host, run string, e Evidence,
	now time.Time) (l *Lease, taken []Holder, err error) {
	now = e.advanced(now)
	names := r.candidates(h, e, now)
	for _, name := range names {
		l, by, err := r.take(ctx, s, key, h, r.prefix()+name, run, e, now)
		if err != nil {
			return nil, nil, fmt.Errorf("taking a place among the hosts that deploy at the same time: %w", err)
		}
		if l != nil {
			for _, other := range names {
				if other != name && e.taken(other, now) {
					freeOwn(ctx, s, key, h, r.prefix()+other)
				}
			}
			return l, nil, nil
		}
		if by != nil {
			taken = latest(taken, *by)
		}
	}
	return nil, taken, nil
}

// freeOwn releases a place if an earlier run of a host took it and did not release it, as when it was killed. If it
// cannot be read or written, it is free when it expires.
func freeOwn(ctx context.Context, s store.Store, key hostkey.Key, h plans.Host, place string) {
	data, info, err := fetch(ctx, s, place, maxBody)
	if err != nil {
		return
	}
	if by, signer := leaseIn(place, data); by.Host == h.Name && signer == key.Public() {
		_ = (&Lease{store: s, key: place, etag: info.ETag, held: data}).Release(ctx)
	}
}

// leaseIn returns the content of a lease, and the key that signed it; nothing if the data is no lease.
func leaseIn(place string, data []byte) (by holder, signer hostkey.Public) {
	signer, err := hostkey.Unseal(place, data)
	if err != nil || json.Unmarshal(data, &by) != nil {
		return holder{}, ""
	}
	return by, signer
}

// candidates returns the places that a host tries to take: free ones first, then those that others may hold.
func (r Rollout) candidates(h plans.Host, e Evidence, now time.Time) (names []string) {
	n := r.Places(h)
	var taken []string
	first := fnv.New32a()
	_, _ = first.Write([]byte(h.Name))
	for i := range n {
		slot := (int(first.Sum32()) + i) % n
		name := leasesDir + cmp.Or(h.Cluster, "-") + "/" + strconv.Itoa(slot) + suffix
		if e.taken(name, now) {
			taken = append(taken, name)
			continue
		}
		names = append(names, name)
	}
	names = append(names, taken...)
	return names[:min(len(names), leaseTries)]
}

// take takes one place. It returns nil if another host has it, and that host if it is known. An object that is no lease
// holds no place, and is overwritten, as is a directory or a link of that name in a directory store.
func (r Rollout) take(ctx context.Context, s store.Store, key hostkey.Key, h plans.Host, place, run string,
	e Evidence, now time.Time) (*Lease, *Holder, error) {
	ctx = store.Displacing(ctx)
	data, info, err := fetch(ctx, s, place, maxBody)
	cond := store.Condition{IfMatch: info.ETag}
	var by *Holder
	if err == nil {
		by = r.holderOf(place, data, h, info, e, now)
	}
	switch {
	// without the right to list, absence is forbidden
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrForbidden):
		cond = store.Condition{IfAbsent: true}
	case errors.Is(err, errTooLong): // it is no lease, so no host has the place
	case err != nil:
		return nil, nil, err
	case by != nil:
		return nil, by, nil
	}
	if data, err = json.Marshal(holder{h.Name, run}); err == nil {
		data, err = key.Seal(place, data)
	}
	if err != nil {
		return nil, nil, err
	}
	put, err := s.Put(ctx, place, bytes.NewReader(data), int64(len(data)), cond)
	if errors.Is(err, store.ErrPrecondition) {
		return nil, nil, nil // another host was quicker
	}
	if err != nil {
		return nil, nil, err
	}
	return &Lease{store: s, key: place, etag: put.ETag, held: data}, nil, nil
}

// holderOf returns the other host that holds a place; nil if none does. Content that is not signed by the host that it
// names, a lease that has expired, and one of a run that is over hold no place.
func (r Rollout) holderOf(place string, data []byte, h plans.Host, info store.Info, e Evidence, now time.Time) *Holder {
	if !info.Now.IsZero() {
		now = info.Now
	}
	by, signer := leaseIn(place, data)
	if signer == "" || by.Host == h.Name || artifact.CheckHost(by.Host) != nil {
		return nil
	}
	if m, member := r.Roster.find(by.Host); member && (m.Key != signer || m.Cluster != h.Cluster) {
		return nil
	}
	if !holds(info.Modified, now) || e.over(by) {
		return nil
	}
	return &Holder{by.Host, cmp.Or(h.Cluster, "-"), info.Modified.UTC(), info.Modified.UTC().Add(LeaseTime)}
}

// holds reports whether a lease that the store received at a time has not expired. One from the future holds no longer
// than it would have if its time were now, so that the time of an object cannot keep a place for good.
func holds(at, now time.Time) bool { return now.Sub(at).Abs() < LeaseTime }

// Keep renews the place at the given interval until it is released, so that a deploy that takes longer than LeaseTime
// keeps it. A failed renewal is retried at the next interval. If another host has taken the place meanwhile, Keep
// stops.
func (l *Lease) Keep(ctx context.Context, every time.Duration) {
	l.ended, l.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(l.done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-l.ended:
				return
			case <-ticker.C:
			}
			within, cancel := context.WithTimeout(ctx, renewTime)
			err := l.write(within, l.held)
			cancel()
			if errors.Is(err, store.ErrPrecondition) {
				return
			}
		}
	}()
}

// write replaces the content of the place while this host has it. If the response to an earlier write was lost, the
// place has another tag, and the content that this host wrote.
func (l *Lease) write(ctx context.Context, data []byte) error {
	err := l.put(ctx, data)
	if !errors.Is(err, store.ErrPrecondition) {
		return err
	}
	now, info, lost := fetch(ctx, l.store, l.key, maxBody)
	if lost != nil || !bytes.Equal(now, l.held) {
		return errors.Join(err, lost)
	}
	l.etag = info.ETag
	return l.put(ctx, data)
}

func (l *Lease) put(ctx context.Context, data []byte) error {
	put, err := l.store.Put(ctx, l.key, bytes.NewReader(data), int64(len(data)), store.Condition{IfMatch: l.etag})
	if err == nil {
		l.etag = put.ETag
	}
	return err
}

// Release releases the place. A place that has expired and that another host has taken is left unchanged.
func (l *Lease) Release(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if l.ended != nil {
		close(l.ended)
		<-l.done
		l.ended = nil
	}
	err := l.write(ctx, []byte(free))
	if err != nil && !errors.Is(err, store.ErrPrecondition) {
		return fmt.Errorf("giving back the place among the hosts that deploy at the same time: %w", err)
	}
	return nil
}
