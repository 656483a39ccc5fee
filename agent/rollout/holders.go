package rollout

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Holder is a host that holds a place among the hosts of its cluster that deploy at the same time.
type Holder struct {
	Host    string    `json:"host"`
	Cluster string    `json:"cluster"`
	Since   time.Time `json:"since"` // when it took the place, or renewed it last
	Until   time.Time `json:"until"` // when the place is free if it does not renew it
}

// mostHolders bounds the places that Holders reads, with one request each.
const mostHolders = 20

// Holders returns hosts of the roster that hold places of their clusters at a time, for people, and the number of taken
// places that it did not read. It returns what it has read so far with an error.
func (r Rollout) Holders(ctx context.Context, s store.Store, e Evidence, now time.Time) (all []Holder, more int,
	err error) {
	now = e.advanced(now)
	read := 0
	for _, name := range slices.Sorted(maps.Keys(e.leases)) {
		if !e.taken(name, now) {
			continue
		}
		if read++; read > mostHolders {
			more++
			continue
		}
		data, info, err := fetch(ctx, s, r.prefix()+name, maxBody)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, errTooLong) {
			continue
		}
		if err != nil {
			return all, more, err
		}
		cluster, _ := placeOf(name)
		by, signer := leaseIn(r.prefix()+name, data) // of none if it is free meanwhile, or not a lease
		m, member := r.Roster.find(by.Host)
		if member && m.Key == signer && cmp.Or(m.Cluster, "-") == cluster && !e.over(by) {
			all = latest(all, Holder{by.Host, cluster, info.Modified.UTC(), info.Modified.UTC().Add(LeaseTime)})
		}
	}
	return all, more, nil
}

// latest adds a holder to a list that has each host once, with the place that it took or renewed last.
func latest(all []Holder, h Holder) []Holder {
	for i := range all {
		if all[i].Host == h.Host {
			if h.Since.After(all[i].Since) {
				all[i] = h
			}
			return all
		}
	}
	return append(all, h)
}

// taken reports whether a listing shows a place as taken at a time.
func (e Evidence) taken(name string, now time.Time) bool {
	l, listed := e.leases[name]
	return listed && l.size > int64(len(free)) && holds(l.at, now)
}

// over reports whether the host of a lease has recorded a result of the same run or of a later one, so that the run
// deploys no more: it was killed, or another party wrote its lease again. If the host's clock was ahead at the time of
// a result, its later runs may have smaller IDs, so only the same run is over.
func (e Evidence) over(by holder) bool {
	for _, said := range e.said[by.Host] {
		id, ahead := said.RunID(), said.At.UTC().Add(clockSlack).Truncate(time.Second).Format(hostrecord.RunTime)
		if id == by.Run || id > by.Run && id < ahead {
			return true
		}
	}
	return false
}
