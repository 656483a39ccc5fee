package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Unverified reads the newest version of a role that snapshots have named and that exists, with any signatures. If the
// current file is lost, an older one is returned with the version of the lost one. Both forms of a project are read.
func Unverified(ctx context.Context, n *publish.Next, name string) (*trust.Role, error) {
	role, _, err := NewestLeft(ctx, n, name)
	return role, err
}

// NewestLeft is like Unverified, and also returns the names of the files that snapshots have named, sorted.
func NewestLeft(ctx context.Context, n *publish.Next, name string) (*trust.Role, []string, error) {
	b := &rebuilding{Next: n}
	var err error
	if b.versions, err = n.Publisher.Versions(ctx); err != nil {
		return nil, nil, err
	}
	if err := b.readNames(ctx); err != nil {
		return nil, nil, err
	}
	forms := []string{name}
	if name != tuf.RoleTargets {
		forms = []string{trust.HeadRole(name), name}
	}
	highest := b.highest(forms)
	for _, look := range []func(context.Context, string, int64) (*trust.Role, error){b.namedRole, b.olderRole} {
		var newest *trust.Role
		for _, form := range forms {
			role, err := look(ctx, form, highest)
			if err != nil {
				return nil, nil, err
			}
			if role != nil && (newest == nil || role.Signed.Version > newest.Signed.Version) {
				newest = role
			}
		}
		if newest != nil {
			newest.Signed.Version = max(newest.Signed.Version, highest)
			return newest, slices.Sorted(maps.Keys(b.named)), nil
		}
	}
	if highest == 0 {
		return nil, nil, diag.StoreLost.Hint(fmt.Errorf("nothing is left of %s", name),
			"restore the store's metadata from a backup")
	}
	role := tuf.NewTargets(time.Now().UTC())
	role.Signed.Version = highest
	return role, slices.Sorted(maps.Keys(b.named)), nil
}

// highest returns the highest version of some files that a snapshot has named, or 0.
func (b *rebuilding) highest(names []string) (highest int64) {
	for _, name := range names {
		for _, meta := range b.named[name] {
			highest = max(highest, meta.Version)
		}
	}
	return highest
}

// namedRole reads the newest file of a role with the length and digest of an entry in a snapshot.
func (b *rebuilding) namedRole(ctx context.Context, name string, highest int64) (*trust.Role, error) {
	for _, meta := range b.named[name] {
		if meta.Version < highest {
			break
		}
		data, _, err := b.read(ctx, name, meta)
		if err != nil {
			return nil, err
		}
		if role, err := trust.Decode[tuf.TargetsType](data); data != nil && err == nil {
			return role, nil
		}
	}
	return nil, nil
}

// olderRole reads the newest file of a role in the store or among this publisher's copies.
func (b *rebuilding) olderRole(ctx context.Context, name string, highest int64) (*trust.Role, error) {
	var newest *trust.Role
	if kept, err := b.Client.Kept(name); err != nil {
		return nil, err
	} else if role, err := trust.Decode[tuf.TargetsType](kept); kept != nil && err == nil &&
		(highest == 0 || role.Signed.Version <= highest) {
		newest = role
	}
	for _, version := range b.versions[name] {
		// an interrupted publisher left it
		if version > highest && highest > 0 || newest != nil && newest.Signed.Version >= version {
			continue
		}
		data, err := trust.ReadMetadata(ctx, b.Publisher.Store, trust.RoleKey(name, version))
		if err := publish.Unanswered(err); err != nil {
			return nil, err
		}
		if role, err := trust.Decode[tuf.TargetsType](data); data != nil && err == nil && role.Signed.Version == version {
			return role, nil
		}
	}
	return newest, nil
}
