package publish

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// unverified reads the newest version of a role that snapshots have named and that is there, whoever
// signed it. Where the file in force is lost it is an older one, which takes the version of the lost one.
// Both forms of a project are asked for it.
func (n *Next) unverified(ctx context.Context, name string) (*trust.Role, error) {
	role, _, err := n.newestLeft(ctx, name)
	return role, err
}

// newestLeft is unverified, and what snapshots have named.
func (n *Next) newestLeft(ctx context.Context, name string) (*trust.Role, *rebuilding, error) {
	b := &rebuilding{Next: n}
	var err error
	if b.versions, err = n.publisher.versions(ctx); err != nil {
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
			return newest, b, nil
		}
	}
	if highest == 0 {
		return nil, nil, diag.WithHint(fmt.Errorf("nothing is left of %s", name), "restore the store's metadata from a backup")
	}
	role := tuf.NewTargets(time.Now().UTC())
	role.Signed.Version = highest
	return role, b, nil
}

// highest is the highest version of some files that a snapshot has named; 0 where none has.
func (b *rebuilding) highest(names []string) (highest int64) {
	for _, name := range names {
		for _, meta := range b.named[name] {
			highest = max(highest, meta.Version)
		}
	}
	return highest
}

// namedRole reads the newest file of a role that a snapshot has named and that is as it was named.
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

// olderRole reads the newest file of a role that is there: in the store, or kept by this publisher.
func (b *rebuilding) olderRole(ctx context.Context, name string, highest int64) (*trust.Role, error) {
	var newest *trust.Role
	if kept, err := b.Client.Kept(name); err != nil {
		return nil, err
	} else if role, err := trust.Decode[tuf.TargetsType](kept); kept != nil && err == nil && (highest == 0 || role.Signed.Version <= highest) {
		newest = role
	}
	for _, version := range b.versions[name] {
		if version > highest && highest > 0 || newest != nil && newest.Signed.Version >= version { // a publisher who was interrupted left it
			continue
		}
		data, err := trust.ReadMetadata(ctx, b.publisher.Store, trust.RoleKey(name, version))
		if err := notAnswered(err); err != nil {
			return nil, err
		}
		if role, err := trust.Decode[tuf.TargetsType](data); data != nil && err == nil && role.Signed.Version == version {
			return role, nil
		}
	}
	return newest, nil
}

// addKnown lets the projects that the snapshot names and that older targets do not delegate be signed by
// the public keys at hand: their delegation was lost with the targets that said so. It is read before it
// is signed.
func (n *Next) addKnown(b *rebuilding, role *trust.Role) error {
	n.Roles[tuf.RoleTargets] = role
	delegated := map[string]bool{}
	if role.Signed.Delegations != nil {
		for _, d := range role.Signed.Delegations.Roles {
			delegated[d.Name] = true
		}
	}
	for _, file := range slices.Sorted(maps.Keys(b.named)) {
		project, _ := trust.IsHead(file)
		if slices.Contains(tuf.TopRoles(), project) || delegated[project] || trust.CheckProject(project) != nil {
			continue
		}
		delegated[project] = true
		keys, err := n.publisher.Keys.Public(project)
		if err != nil {
			continue // its owner adds it with `corpus project add`
		}
		if err := n.delegate(project, keys); err != nil {
			return err
		}
	}
	return nil
}
