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

// Prefix is where a store keeps the public keys of hosts, as hosts/HOST/KEY.json.
const Prefix = "hosts/"

const suffix = ".json"

// Place is the key of the object that registers a host's public key.
func Place(host string, public Public) string { return Prefix + host + "/" + string(public) + suffix }

// Registration is the content of that object. What counts of it is its name, and when the store got it.
type Registration struct {
	Host  string    `json:"host"`
	Key   Public    `json:"key"`
	At    time.Time `json:"at"`    // by the host's clock
	Agent string    `json:"agent"` // version of the program
}

// Register puts the public key of a host into a store. It changes nothing where the key is there: it looks first, since
// some servers ignore that a write is conditional, and another write would make the key a newer one.
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
	Since time.Time `json:"since"` // when the store got it, by the store's clock
}

// Registry is what a store knows of hosts: their keys by name, the first one first. The first is the host's, and the
// others are conflicts: nothing that they sign counts until a person has removed the first.
type Registry map[string][]Registered

// Disputed reports whether a name has several keys, so that it matters which one is the first.
func (r Registry) Disputed() bool {
	for _, keys := range r {
		if len(keys) > 1 {
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

// Prefer puts the keys that hosts are known to have had first in their places, as far as they are registered still. The
// time of an object says less: a user who may write it again moves it.
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

// List reads the registry of a store, in one request for a thousand hosts.
func List(ctx context.Context, s store.Store) (Registry, error) { return list(ctx, s, Prefix) }

// Of reads the entries of one host.
func Of(ctx context.Context, s store.Store, host string) ([]Registered, error) {
	if err := artifact.CheckHost(host); err != nil {
		return nil, err
	}
	known, err := list(ctx, s, Prefix+host+"/")
	return known[host], err
}

func list(ctx context.Context, s store.Store, prefix string) (Registry, error) {
	known := Registry{}
	for info, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("reading the keys of hosts: %w", err)
		}
		parts := strings.Split(info.Key, "/")
		if len(parts) != 3 || !strings.HasSuffix(parts[2], suffix) || artifact.CheckHost(parts[1]) != nil {
			continue // no registration: other names may be here, and count for nothing
		}
		public, err := ParsePublic(strings.TrimSuffix(parts[2], suffix))
		if err != nil {
			continue
		}
		known[parts[1]] = append(known[parts[1]], Registered{public, info.Modified.UTC()})
	}
	for _, keys := range known {
		slices.SortStableFunc(keys, func(a, b Registered) int {
			return cmp.Or(a.Since.Compare(b.Since), strings.Compare(string(a.Key), string(b.Key)))
		})
	}
	return known, nil
}

// Check returns whether a report of a host, as a store keeps it in a place, is signed with the host's key. A host that
// has no key in the registry may report without; of one that has, only what its first key signed counts, and an error
// says why another report does not.
func (r Registry) Check(host, place string, report []byte) (signed bool, err error) {
	keys := r[host]
	by, err := Unseal(place, report)
	switch {
	case len(keys) == 0 && errors.Is(err, ErrUnsigned):
		return false, nil
	case err != nil:
		return false, err
	case len(keys) == 0:
		return false, nil // its key was not registered, or a person had it forgotten
	case by == keys[0].Key:
		return true, nil
	}
	return false, fmt.Errorf("the key that signed it is not the one that %s registered first", host)
}
