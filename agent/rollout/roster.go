package rollout

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Limits of a roster, for which a hundred thousand hosts are room enough.
const (
	maxRoster  = 64 << 20
	maxMembers = 200_000
)

// Roster lists the hosts of a channel at the start of a rollout. Results of other hosts do not count.
type Roster struct {
	Hosts []Member `json:"hosts"` // by name
}

// Member is a host of a roster.
type Member struct {
	Name    string         `json:"name"`
	Region  string         `json:"region,omitempty"`
	Cluster string         `json:"cluster,omitempty"`
	Key     hostkey.Public `json:"key"` // the key that it registered first
}

func (m Member) host() plans.Host {
	return plans.Host{Name: m.Name, Region: m.Region, Cluster: m.Cluster}
}

func (m Member) check() error {
	_, err := hostkey.ParsePublic(string(m.Key))
	errs := []error{artifact.CheckHost(m.Name), err}
	if m.Cluster != "" {
		errs = append(errs, artifact.CheckHost(m.Cluster)) // like the name, it is part of object keys
	}
	return errors.Join(errs...)
}

// Places returns the hosts in the form that plans use.
func (r Roster) Places() []plans.Host {
	hosts := make([]plans.Host, len(r.Hosts))
	for i, m := range r.Hosts {
		hosts[i] = m.host()
	}
	return hosts
}

// Keys returns the keys of the hosts, by host.
func (r Roster) Keys() map[string]hostkey.Public {
	keys := make(map[string]hostkey.Public, len(r.Hosts))
	for _, m := range r.Hosts {
		keys[m.Name] = m.Key
	}
	return keys
}

// find returns a host by its name.
func (r Roster) find(name string) (Member, bool) {
	i, ok := slices.BinarySearchFunc(r.Hosts, name, func(m Member, name string) int { return cmp.Compare(m.Name, name) })
	if !ok {
		return Member{}, false
	}
	return r.Hosts[i], true
}

// Content returns the roster's file, and its digest, which Start.Roster must equal.
func (r Roster) Content() (data []byte, digest string, err error) {
	r.Hosts = slices.Clone(r.Hosts)
	slices.SortFunc(r.Hosts, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	if err := r.check(); err != nil {
		return nil, "", err
	}
	if data, err = json.Marshal(r); err != nil {
		return nil, "", err
	}
	data = append(data, '\n')
	return data, digestOf(data), nil
}

func digestOf(data []byte) string { return string(artifact.NewDigest(sha256.Sum256(data))) }

func (r Roster) check() error {
	if len(r.Hosts) > maxMembers {
		return fmt.Errorf("a rollout has at most %d hosts, and not %d", maxMembers, len(r.Hosts))
	}
	for i, m := range r.Hosts {
		if err := m.check(); err != nil {
			return fmt.Errorf("host %d of the roster: %w", i+1, err)
		}
		if i > 0 && r.Hosts[i-1].Name >= m.Name {
			return fmt.Errorf("the roster has %s twice, or its hosts are not in the order of their names", m.Name)
		}
	}
	return nil
}

// ErrDamaged is the error of a roster that is not the one with which its rollout started.
var ErrDamaged = errors.New("the object was replaced or damaged")

// ParseRoster parses a roster and verifies its digest, which is that of the start. The error of another one wraps
// ErrDamaged.
func ParseRoster(data []byte, digest string) (Roster, error) {
	var r Roster
	if got := digestOf(data); got != digest {
		return r, exit.WithCode(exit.Refused, fmt.Errorf(
			"the roster of the rollout has the digest %s, and the start of the rollout names %s: %w", got, digest, ErrDamaged))
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("reading the roster of the rollout: %w", err)
	}
	return r, r.check()
}

// WriteRoster writes the roster of a rollout that is about to start into the store.
func WriteRoster(ctx context.Context, s store.Store, ref artifact.Ref, id string, r Roster) (digest string, err error) {
	data, digest, err := r.Content()
	if err != nil {
		return "", err
	}
	_, err = s.Put(ctx, plans.RosterKey(ref, id), bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true})
	if err != nil {
		return "", fmt.Errorf("writing the roster of the rollout: %w", err)
	}
	return digest, nil
}

// FetchRoster reads the roster of a rollout; data is its file, for ParseRoster.
func FetchRoster(ctx context.Context, s store.Store, ref artifact.Ref, start plans.Start) (r Roster, data []byte,
	err error) {
	if data, _, err = fetch(ctx, s, plans.RosterKey(ref, start.ID), maxRoster); err != nil {
		err = fmt.Errorf("reading the roster of the rollout: %w", err)
		if errors.Is(err, store.ErrNotFound) {
			err = diag.Evidence.Hint(err, "the store has lost it, or was restored or copied without it, so no more hosts "+
				"take the release: restore it from a copy of the store, or promote or point the channel again, or `corpus "+
				"rollout abort %s %s`", ref.Project, ref.Channel)
		}
		return r, nil, err
	}
	if r, err = ParseRoster(data, start.Roster); errors.Is(err, ErrDamaged) {
		err = diag.Evidence.Hint(err, "restore roster.json from a copy of the store, or promote or point the channel "+
			"again, or `corpus rollout abort %s %s`", ref.Project, ref.Channel)
	}
	return r, data, err
}

// errTooLong is the error of an object that is longer than any that the agent or `corpus` writes.
var errTooLong = errors.New("too long")

// fetch reads an object of at most limit bytes. The error of a longer one wraps errTooLong, and info is valid then.
func fetch(ctx context.Context, s store.Store, key string, limit int64) ([]byte, store.Info, error) {
	data, info, err := store.ReadUpTo(ctx, s, key, limit+1)
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is %w: it has more than the %d bytes allowed", key, errTooLong, limit)
	}
	return data, info, err
}

// member returns a host of the roster by its name; for a name that the roster does not have, a host without region and
// cluster.
func (r Roster) member(name string) plans.Host {
	if m, ok := r.find(name); ok {
		return m.host()
	}
	return plans.Host{Name: name}
}
