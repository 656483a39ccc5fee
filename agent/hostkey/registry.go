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
}

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

// List returns the registry of a store. It takes one request for a thousand hosts.
func List(ctx context.Context, s store.Store) (Registry, error) { return list(ctx, s, Prefix) }

// Of returns the registered keys of one host.
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
			continue // not a registration; other names are ignored
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
