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

// Listed is a valid record in a store.
type Listed struct {
	Record
	Key    string    `json:"-"`
	Seen   time.Time `json:"seen"`   // when the store received it, by the store's clock
	Signed bool      `json:"signed"` // with the key that the host registered first
	// Foreign is set if a record of the host is signed with none of its registered keys.
	Foreign bool `json:"-"`
	// Replaced is set if the store received a record that the first key did not sign after this one: of a machine that
	// replaced the host, or of another user who may write there.
	Replaced bool `json:"replaced,omitempty"`
	Twice    bool `json:"-"` // another record with the same key was written since this one's run started
	// Unbegun is true if a failure object overrules the record: a later run could not begin, or not write to the host's
	// disk. Outcome, Exit, Key and Seen are of that failure, and the other fields are those of the record.
	Unbegun bool `json:"could_not_begin,omitempty"`
}

// Ignored is a record that is not valid.
type Ignored struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}

// Invalid is the reason why the objects of a host with a registered key are ignored if none of them is a record.
const Invalid = "no object below its name in fleet/ is a valid record"

// mostTried is the number of records of a host that are checked to find a valid one.
const mostTried = 32

// candidate is a record whose signature was not checked yet.
type candidate struct {
	Listed
	signed, signature string
	unkept            bool // it is a failure object, which has no state of the host
}

// List reads the records of a project's hosts, or of all hosts for "", in one request for a thousand names. If a host
// has more records than are kept, those that its first key in known did not sign are omitted first.
func List(ctx context.Context, s store.Store, project string, known hostkey.Registry) (Unchecked, error) {
	found := Unchecked{}
	for info, err := range s.List(ctx, PrefixOf(project)) {
		if err != nil {
			return nil, fmt.Errorf("reading the records of hosts: %w", err)
		}
		host := hostOf(info.Key)
		if host == "" {
			continue
		}
		if found[host] == nil {
			found[host] = &hostObjects{}
		}
		found[host].add(info, known[host])
	}
	for host, o := range found {
		if len(o.records) > mostTried {
			o.truncate(known[host])
		}
	}
	return found, nil
}

// candidateOf parses the key of an object. Other names than those of records are ignored.
func candidateOf(info store.Info) (candidate, bool) {
	if c, ok := parseUnkept(info); ok {
		return c, true
	}
	r, text, signature, err := parse(info.Key)
	return candidate{Listed{Record: r, Key: info.Key, Seen: info.Modified.UTC()}, text, signature, false}, err == nil
}

// Of returns the object keys of a host's records.
func (u Unchecked) Of(host string) (objects []string) {
	if u[host] == nil {
		return nil
	}
	for _, c := range u[host].records {
		objects = append(objects, c.Key)
	}
	return objects
}

// SignedBy returns the object keys of a host's records that a key signed.
func (u Unchecked) SignedBy(host string, key hostkey.Public) (objects []string) {
	if u[host] == nil {
		return nil
	}
	for _, c := range u[host].records {
		if key.SignedName(c.signed, c.signature) {
			objects = append(objects, c.Key)
		}
	}
	return objects
}

// Check returns the current record of each host, by host. For a host with a registered key, only records that its first
// key signed are valid.
func (u Unchecked) Check(known hostkey.Registry) (hosts []Listed, ignored []Ignored) {
	for _, host := range slices.Sorted(maps.Keys(u)) {
		if !u.Has(host) {
			if len(known[host]) > 0 {
				ignored = append(ignored, Ignored{host, Invalid})
			}
			continue
		}
		if r, why := newest(u[host].records, known[host]); why == "" {
			hosts = append(hosts, r)
		} else {
			ignored = append(ignored, Ignored{host, why})
		}
	}
	return hosts, ignored
}

// inOrder sorts records: failure objects first, then the latest run first, by the number that the host signed, and then
// by the store's clock, since that of a host may be wrong.
func inOrder(all []candidate) {
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(first(a.unkept, b.unkept), cmp.Compare(b.Sequence, a.Sequence), b.Seen.Compare(a.Seen))
	})
}

// first compares two values so that true sorts before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// newest returns the latest valid record of a host, or the reason why there is none.
func newest(all []candidate, keys []hostkey.Registered) (Listed, string) {
	inOrder(all)
	failures, others := partition(all)
	if len(keys) == 0 {
		return withFailure(firstOf(others), len(others) > 0, failures), ""
	}
	foreign := slices.ContainsFunc(failures, func(c candidate) bool { return !signedByOne(keys, c) })
	failures = signedWith(keys[0].Key, failures)
	for i := range failures {
		failures[i].Signed = true
	}
	var valid []Listed
	for _, c := range others[:min(len(others), mostTried)] {
		switch {
		case keys[0].Key.SignedName(c.signed, c.signature):
			valid = append(valid, c.Listed)
		case !foreign:
			foreign = !signedByOne(keys[1:], c)
		}
	}
	switch {
	case len(valid) > 0:
		r := withFailure(chosen(valid), true, failures)
		r.Foreign, r.Replaced = foreign, isReplaced(keys[0].Key, all, r.Seen)
		return r, ""
	case len(failures) > 0:
		return withFailure(Listed{}, false, failures), ""
	}
	return Listed{}, "the key that signed its record is not the one that it registered first"
}

// isReplaced reports whether one of the records of a host that were received after the current one is not signed with
// the first key of the host: every user who may write there can have written it.
func isReplaced(first hostkey.Public, all []candidate, current time.Time) bool {
	newer := slices.Clone(all)
	newer = slices.DeleteFunc(newer, func(c candidate) bool { return !c.Seen.After(current) })
	return slices.ContainsFunc(newer[:min(len(newer), mostTried)], func(c candidate) bool {
		return !first.SignedName(c.signed, c.signature)
	})
}

// signedByOne reports whether one of the keys signed a record.
func signedByOne(keys []hostkey.Registered, c candidate) bool {
	return slices.ContainsFunc(keys, func(k hostkey.Registered) bool { return k.Key.SignedName(c.signed, c.signature) })
}

// firstOf returns the first record; the zero value if there is none.
func firstOf(all []candidate) Listed {
	if len(all) == 0 {
		return Listed{}
	}
	return all[0].Listed
}

// maxObject bounds how many bytes of a record's object are read.
const maxObject = 64 << 10

// Read reads the content of a record's object. It returns the zero Detail if the object no longer exists, or is not
// what the host signed.
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

// Ahead reports whether the run of the record started later than the store received the record: the clock of the host
// is ahead, or the host did not write the record.
func (r *Listed) Ahead() bool { return r.Started().After(r.Seen.Add(slack)) }

// farAhead is how far the clock of a host may be ahead for AheadBy to return a duration.
const farAhead = 7 * 24 * time.Hour

// AheadBy returns how far the clock of the host was ahead at its run, or the time that it had if that is far.
func (r *Listed) AheadBy() string {
	if by := r.Started().Sub(r.Seen); by <= farAhead {
		return by.Round(time.Minute).String() + " ahead"
	}
	return "at " + r.Started().Format("2006-01-02")
}

// chosen returns the current record of those that a host signed, which are sorted by descending number: the first,
// unless a later run has a lower number because the disk of the host was restored to an earlier state. The order of
// runs follows the host's clock, up to the time of the store: a record that is ahead of it is used only if all are.
func chosen(signed []Listed) Listed {
	if i := slices.IndexFunc(signed, func(r Listed) bool { return !r.Ahead() }); i > 0 {
		signed = slices.Concat(signed[i:], signed[:i])
	}
	best := signed[0]
	for _, r := range signed[1:] {
		if r.Started().After(best.Started()) && !r.Ahead() {
			best = r
		}
	}
	best.Signed = true
	best.Twice = slices.ContainsFunc(signed, func(r Listed) bool {
		return r.Key != best.Key && r.Seen.After(best.Started().Add(slack))
	})
	return best
}

// Overlap reports whether two records are of hosts that ran at the same time.
func (r *Listed) Overlap(other Listed) bool {
	return r.Seen.After(other.Started().Add(slack)) && other.Seen.After(r.Started().Add(slack))
}
