package hostkey

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Limits of what Renamed and Registers read.
const (
	maxRegistration = 64 << 10
	mostNames       = 8 // of a key
)

// Renamed returns the name that a host with a key has now: another one for which the key was registered after it was
// registered for host, if it still is; "" if there is none. The name of an object that registers a key proves nothing,
// since every user who may write there can choose it. So the name counts only if reported says that a record of that
// name is signed with the key, or if the key signed the object.
func (r Registry) Renamed(ctx context.Context, s store.Store, host string, key Public,
	reported func(name string) bool) (string, error) {
	names := r.later(host, key)
	if i := slices.IndexFunc(names, reported); i >= 0 {
		return names[i], nil
	}
	for _, name := range names[:min(len(names), mostNames)] {
		if ok, err := key.Registers(ctx, s, name); ok || err != nil {
			return name, err
		}
	}
	return "", nil
}

// later returns the other names for which a key was registered after it was registered for host.
func (r Registry) later(host string, key Public) (names []string) {
	var since time.Time
	is := func(k Registered) bool { return k.Key == key }
	if i := slices.IndexFunc(r[host], is); i >= 0 {
		since = r[host][i].Since
	}
	for other, keys := range r {
		i := slices.IndexFunc(keys, is)
		if other != host && i >= 0 && keys[i].Since.After(since) {
			names = append(names, other)
		}
	}
	slices.Sort(names)
	return names
}

// Registers reports whether a store has an object that registers the key for a host and is signed with that key. It is
// false if this reader may not read the object.
func (p Public) Registers(ctx context.Context, s store.Store, host string) (bool, error) {
	place := Place(host, p)
	data, _, err := store.ReadUpTo(ctx, s, place, maxRegistration)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	by, err := Unseal(place, data)
	return err == nil && by == p, nil //nolint:nilerr // another content registers nothing
}
