package hostkey

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Prefix is the key prefix of the public keys of hosts in a store, whose keys are hosts/HOST/KEY.json.
const Prefix = "hosts/"

const suffix = ".json"

// Place returns the key of the object that registers a host's public key.
func Place(host string, public Public) string { return Prefix + host + "/" + string(public) + suffix }

// Registration is the content of that object. Readers use only the object's name and the time when the store received
// it.
type Registration struct {
	Host  string    `json:"host"`
	Key   Public    `json:"key"`
	At    time.Time `json:"at"`    // by the host's clock
	Agent string    `json:"agent"` // version of the program
}

// Register writes the public key of a host to a store, unless it is registered. It reads first, since some servers
// ignore the condition of a write, and another write would give the object a later time.
func (k Key) Register(ctx context.Context, s store.Store, r Registration) error {
	if err := artifact.CheckHost(r.Host); err != nil {
		return fmt.Errorf("registering the host's key: %w", err)
	}
	r.Key = k.Public()
	if body, _, err := s.Get(ctx, Place(r.Host, r.Key), 0); err == nil {
		return body.Close()
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	place := Place(r.Host, r.Key)
	if data, err = k.Seal(place, data); err != nil {
		return err
	}
	_, err = s.Put(ctx, place, bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true})
	if err != nil && !errors.Is(err, store.ErrPrecondition) {
		return fmt.Errorf("registering the host's key: %w", err)
	}
	return nil
}

// Registered is a public key that a store has for a host.
type Registered struct {
	Key   Public    `json:"key"`
	Since time.Time `json:"since"` // when the store received it, by the store's clock
	// Omitted is the number of later keys of the host that List left out; see mostKeys.
	Omitted int `json:"omitted,omitempty"`
}

// mostKeys bounds how many keys of a host are kept, since a machine may write many below its name.
const mostKeys = 16

// Registry has the keys of hosts in a store by host name, in the order of their registration. The first is the key of
// the host, and the others are conflicts: their signatures are ignored until a person has removed the first.
type Registry map[string][]Registered

// Disputed reports whether a host has several keys, so that their order matters.
func (r Registry) Disputed() bool {
	for _, keys := range r {
		if len(keys) > 1 {
			return true
		}
	}
	return false
}

// Incomplete reports whether keys of a host were omitted.
func (r Registry) Incomplete() bool {
	for _, keys := range r {
		if slices.ContainsFunc(keys, func(k Registered) bool { return k.Omitted > 0 }) {
			return true
		}
	}
	return false
}

// First returns the key of each host.
func (r Registry) First() map[string]Public {
	first := map[string]Public{}
	for host, keys := range r {
		first[host] = keys[0].Key
	}
	return first
}

// Prefer moves the keys that are known to be the first of their hosts to the front, if they are still registered. The
// time of an object is less reliable: a user who may write the object again changes it.
func (r Registry) Prefer(first map[string]Public) {
	for host, keys := range r {
		known, ok := first[host]
		at := slices.IndexFunc(keys, func(k Registered) bool { return k.Key == known })
		if ok && at > 0 {
			others := slices.Delete(slices.Clone(keys), at, at+1)
			r[host] = append([]Registered{keys[at]}, others...)
		}
	}
}

// Others returns the number of keys of a host that are conflicts, including those that were omitted.
func (r Registry) Others(host string) int {
	n := max(0, len(r[host])-1)
	for _, k := range r[host] {
		n += k.Omitted
	}
	return n
}

// List returns the registry of a store. It takes one request for a thousand hosts.
func List(ctx context.Context, s store.Store) (Registry, error) { return ListKeeping(ctx, s) }

// ListKeeping returns the registry of a store. Of a host with very many keys it has those that were registered first,
// and any that is in first.
func ListKeeping(ctx context.Context, s store.Store, first ...map[string]Public) (Registry, error) {
	return list(ctx, s, Prefix, first)
}

// Of returns the registered keys of one host.
func Of(ctx context.Context, s store.Store, host string) ([]Registered, error) {
	if err := artifact.CheckHost(host); err != nil {
		return nil, err
	}
	known, err := list(ctx, s, Prefix+host+"/", nil)
	return known[host], err
}

// FirstOf returns the key that a host registered first; "" if it has none.
func FirstOf(ctx context.Context, s store.Store, host string) (Public, error) {
	keys, err := Of(ctx, s, host)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	return keys[0].Key, nil
}

// AllOf returns all registered keys of one host, however many there are.
func AllOf(ctx context.Context, s store.Store, host string) (keys []Public, err error) {
	if err := artifact.CheckHost(host); err != nil {
		return nil, err
	}
	for info, err := range s.List(ctx, Prefix+host+"/") {
		if err != nil {
			return nil, fmt.Errorf("reading the keys of %s: %w", host, err)
		}
		if _, key, ok := parseRegistration(info); ok {
			keys = append(keys, key.Key)
		}
	}
	return keys, nil
}

func list(ctx context.Context, s store.Store, prefix string, first []map[string]Public) (Registry, error) {
	known := Registry{}
	keep := func(host string, key Public) bool {
		return slices.ContainsFunc(first, func(of map[string]Public) bool { return of[host] == key })
	}
	for info, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("reading the keys of hosts: %w", err)
		}
		host, key, ok := parseRegistration(info)
		if !ok {
			continue // other names are ignored
		}
		if known[host] = append(known[host], key); len(known[host]) > 2*mostKeys {
			known.truncate(host, keep)
		}
	}
	for host := range known {
		known.truncate(host, keep)
	}
	return known, nil
}

// parseRegistration parses the name of an object that registers a key.
func parseRegistration(info store.Info) (host string, key Registered, ok bool) {
	parts := strings.Split(info.Key, "/")
	if len(parts) != 3 || !strings.HasSuffix(parts[2], suffix) || artifact.CheckHost(parts[1]) != nil {
		return "", Registered{}, false
	}
	public, err := ParsePublic(strings.TrimSuffix(parts[2], suffix))
	return parts[1], Registered{Key: public, Since: info.Modified.UTC()}, err == nil
}

// truncate sorts the keys of a host by the time of their registration, and omits the last ones of very many.
func (r Registry) truncate(host string, keep func(string, Public) bool) {
	keys := r[host]
	slices.SortStableFunc(keys, func(a, b Registered) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(string(a.Key), string(b.Key)))
	})
	if len(keys) <= mostKeys {
		return
	}
	kept, omitted := slices.Clone(keys[:mostKeys]), 0
	for _, k := range keys[mostKeys:] {
		if omitted += k.Omitted; keep(host, k.Key) {
			k.Omitted = 0
			kept = append(kept, k)
			continue
		}
		omitted++
	}
	kept[0].Omitted += omitted
	r[host] = kept
}

// Check reports whether a report of a host, at its key in a store, is signed with the host's key. A host without a
// registered key may report without a signature. For a host with one, a report that its first key has not signed is an
// error.
func (r Registry) Check(host, place string, report []byte) (signed bool, err error) {
	keys := r[host]
	by, err := Unseal(place, report)
	switch {
	case len(keys) == 0 && errors.Is(err, ErrUnsigned):
		return false, nil
	case err != nil:
		return false, err
	case len(keys) == 0:
		return false, nil // its key is not registered, or a person removed it
	case by == keys[0].Key:
		return true, nil
	}
	return false, fmt.Errorf("the key that signed it is not the one that %s registered first", host)
}
