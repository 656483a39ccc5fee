package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
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

// Holders returns hosts of the roster that hold places at a time, for people. It returns what it has read so far with
// an error.
func (r Rollout) Holders(ctx context.Context, s store.Store, e Evidence, now time.Time) (all []Holder, err error) {
	now = e.advanced(now)
	read := 0
	for _, name := range slices.Sorted(maps.Keys(e.leases)) {
		l := e.leases[name]
		if l.size <= int64(len(free)) || !holds(l.at, now) {
			continue
		}
		if read++; read > mostHolders {
			break
		}
		data, info, err := fetch(ctx, s, r.prefix()+name, maxBody)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, errTooLong) {
			continue
		}
		if err != nil {
			return all, err
		}
		cluster, _, _ := strings.Cut(strings.TrimPrefix(name, leasesDir), "/")
		var by holder
		signer, err := hostkey.Unseal(r.prefix()+name, data)
		if err != nil || json.Unmarshal(data, &by) != nil {
			continue // free meanwhile, or not a lease
		}
		if m, member := r.Roster.find(by.Host); member && m.Key == signer {
			all = append(all, Holder{by.Host, cluster, info.Modified.UTC(), info.Modified.UTC().Add(LeaseTime)})
		}
	}
	return all, nil
}
