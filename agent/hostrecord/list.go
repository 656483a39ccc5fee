package hostrecord

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Listed is a record that a store has and that counts.
type Listed struct {
	Record
	Key    string    `json:"-"`
	Seen   time.Time `json:"seen"`   // when the store got it, by the store's clock
	Signed bool      `json:"signed"` // with the key that the host registered first
	Passed int       `json:"-"`      // later records that do not count
	Twice  bool      `json:"-"`      // another record with the same key was written since this one's run started
}

// Ignored is a record that does not count.
type Ignored struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}

// mostTried is how many records of a host are looked at to find one that counts.
const mostTried = 32

// candidate is a record whose signature was not checked yet.
type candidate struct {
	Listed
	signed, signature string
}

// Unchecked are the records that a store has, by host. None of them counts before Check.
type Unchecked map[string][]candidate

// List reads the records of a project's hosts, or of all hosts for "", in one request for a thousand names.
func List(ctx context.Context, s store.Store, project string) (Unchecked, error) {
	found := Unchecked{}
	for info, err := range s.List(ctx, PrefixOf(project)) {
		if err != nil {
			return nil, fmt.Errorf("reading the records of hosts: %w", err)
		}
		r, text, signature, err := parse(info.Key)
		if err != nil {
			continue // other names may be here, and count for nothing
		}
		c := candidate{Listed{Record: r, Key: info.Key, Seen: info.Modified.UTC()}, text, signature}
		found[r.Host] = keepNewest(append(found[r.Host], c))
	}
	return found, nil
}

// SignedBy are the keys of the objects of a host's records that this key of a host signed.
func (u Unchecked) SignedBy(host string, key hostkey.Public) (objects []string) {
	for _, c := range u[host] {
		if key.SignedName(c.signed, c.signature) {
			objects = append(objects, c.Key)
		}
	}
	return objects
}

// Check returns the current record of each host, by host. Of a host that has registered a key only what its first key
// signed counts.
func (u Unchecked) Check(known hostkey.Registry) (hosts []Listed, ignored []Ignored) {
	for _, host := range slices.Sorted(maps.Keys(u)) {
		if len(u[host]) == 0 {
			continue
		}
		if r, why := newest(u[host], known[host]); why == "" {
			hosts = append(hosts, r)
		} else {
			ignored = append(ignored, Ignored{host, why})
		}
	}
	return hosts, ignored
}

// keepNewest limits the number of records that are kept of one host.
func keepNewest(all []candidate) []candidate {
	if len(all) <= 2*mostTried {
		return all
	}
	inOrder(all)
	return all[:mostTried]
}

// inOrder sorts records, the latest run first: by the number that the host signed, and then by the store's clock, since
// that of a host may be wrong.
func inOrder(all []candidate) {
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Sequence, a.Sequence), b.Seen.Compare(a.Seen))
	})
}

// newest is the latest record of a host that counts, or why none does.
func newest(all []candidate, keys []hostkey.Registered) (Listed, string) {
	inOrder(all)
	if len(keys) == 0 {
		return all[0].Listed, ""
	}
	var signed []Listed
	passed := 0
	for i, c := range all[:min(len(all), mostTried)] {
		if !keys[0].Key.SignedName(c.signed, c.signature) {
			continue
		}
		if len(signed) == 0 {
			passed = i
		}
		signed = append(signed, c.Listed)
	}
	if len(signed) > 0 {
		return chosen(signed, passed), ""
	}
	return Listed{}, "the key that signed its record is not the one that it registered first"
}

// maxObject is how many bytes are read of a record's object.
const maxObject = 64 << 10

// Read reads what a record says beyond its name. It is the zero Detail where the object is gone, or is not what the
// host signed.
func Read(ctx context.Context, s store.Store, known hostkey.Registry, r Listed) (Detail, error) {
	data, _, err := store.ReadUpTo(ctx, s, r.Key, maxObject)
	if err != nil {
		return Detail{}, fmt.Errorf("reading the record of a host: %w", err)
	}
	var d Detail
	if _, err := known.Check(r.Host, r.Key, data); err != nil || json.Unmarshal(data, &d) != nil {
		return Detail{}, nil //nolint:nilerr // every user who may write to the store can have written it
	}
	return d, nil
}

// slack is how far the clocks of a host and of the store may be apart.
const slack = 10 * time.Minute

// chosen is the record that counts of those that a host signed, the highest number first: that one, unless a later run
// has a lower number, since the disk of the host was put back to an earlier state. That a run is later is what the
// host's clock says, which counts only so far as the store had that time, too.
func chosen(signed []Listed, passed int) Listed {
	best := signed[0]
	for _, r := range signed[1:] {
		if r.Started().After(best.Started()) && !r.Started().After(r.Seen.Add(slack)) {
			best = r
		}
	}
	best.Signed, best.Passed = true, passed
	best.Twice = slices.ContainsFunc(signed, func(r Listed) bool {
		return r.Key != best.Key && r.Seen.After(best.Started().Add(slack))
	})
	return best
}

// Overlap reports whether two records are of hosts that ran at the same time.
func (r *Listed) Overlap(other Listed) bool {
	return r.Seen.After(other.Started().Add(slack)) && other.Seen.After(r.Started().Add(slack))
}
