package hostkey

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Limits of what a Renaming and Registers read.
const (
	maxRegistration = 64 << 10
	mostNames       = 8 // of a key
)

// Renaming finds out which hosts were renamed.
type Renaming struct {
	Store store.Store
	Keys  Registry
	// Reported reports whether a record of a host is signed with a key.
	Reported func(name string, key Public) bool
	// Requests is how many requests it may still make. Without any left, a host counts as renamed only if Reported
	// says so.
	Requests int

	names map[Public][]string // the hosts for which a key is registered
}

// Now returns the name that a host with a key has now: another one for which the key was registered after it was
// registered for host, if it still is; "" if there is none. The name of an object that registers a key proves nothing,
// since every user who may write there can choose it. So the name counts only if Reported says that a record of that
// name is signed with the key, or if the key signed the object.
func (r *Renaming) Now(ctx context.Context, host string, key Public) (string, error) {
	names := r.later(host, key)
	if i := slices.IndexFunc(names, func(name string) bool { return r.Reported(name, key) }); i >= 0 {
		return names[i], nil
	}
	for _, name := range names[:min(len(names), mostNames, r.Requests)] {
		r.Requests--
		if ok, err := key.Registers(ctx, r.Store, name); ok || err != nil {
			return name, err
		}
	}
	return "", nil
}

// later returns the other names for which a key was registered after it was registered for host.
func (r *Renaming) later(host string, key Public) (names []string) {
	if r.names == nil {
		r.names = map[Public][]string{}
		for name, keys := range r.Keys {
			for _, k := range keys {
				r.names[k.Key] = append(r.names[k.Key], name)
			}
		}
	}
	var since time.Time
	for _, k := range r.Keys[host] {
		if k.Key == key {
			since = k.Since
		}
	}
	for _, other := range r.names[key] {
		if i := slices.IndexFunc(r.Keys[other], func(k Registered) bool { return k.Key == key }); other != host &&
			r.Keys[other][i].Since.After(since) {
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
