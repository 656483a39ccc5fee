package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// takeTargets finds the targets role, which has the delegations of the other roles.
func (b *rebuilding) takeTargets(ctx context.Context, ready []byte) error {
	root := b.Client.Trusted().Root
	if ready != nil {
		role, err := trust.Decode[tuf.TargetsType](ready)
		if err != nil {
			return err
		}
		o, file, err := b.Publisher.StageReady(ctx, tuf.RoleTargets, ready)
		if err != nil {
			return err
		}
		b.objects, b.meta[trust.MetaName(tuf.RoleTargets)] = append(b.objects, o), file
		b.result.Roles[tuf.RoleTargets] = role.Signed.Version
		b.Client.Trusted().Targets[tuf.RoleTargets] = role
		return nil
	}
	role, missing, err := b.take(ctx, tuf.RoleTargets, func(r *trust.Role) error {
		return root.VerifyDelegate(tuf.RoleTargets, r)
	})
	if err != nil {
		return err
	}
	if missing != nil {
		b.result.Missing = append(b.result.Missing, *missing)
		return diag.StoreLost.Hint(missing,
			"have the holder of the targets key run `corpus export targets -o targets.draft`, read it, `corpus sign "+
				"targets.draft`, and then run `corpus import targets.draft`")
	}
	if role == nil {
		return &Missing{Role: tuf.RoleTargets, Why: "no version in the store is signed as the root requires"}
	}
	b.Client.Trusted().Targets[tuf.RoleTargets] = role
	return nil
}

// takeRest finds the projects and the other roles that snapshots have named.
func (b *rebuilding) takeRest(ctx context.Context) error {
	targets := b.Client.Trusted().Targets[tuf.RoleTargets]
	ended, err := trust.Ended(targets)
	if err != nil {
		return err
	}
	names := slices.Collect(maps.Keys(b.named))
	if len(names) == 0 || b.torn {
		for _, project := range b.Client.Projects() {
			names = append(names, project)
			if len(b.versions[trust.HeadRole(project)]) > 0 {
				names = append(names, trust.HeadRole(project))
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if name == tuf.RoleTargets {
			continue
		}
		verify := func(*trust.Role) error { return nil }
		project, _ := trust.IsHead(name)
		over := func(version int64) bool { // an older file must not replace a newer one that was named
			list := b.named[name]
			return version <= ended[project] && (len(list) == 0 || list[0].Version <= ended[project])
		}
		if b.Delegates(project) {
			verify = func(r *trust.Role) error {
				if over(r.Signed.Version) { // it is void, and hosts have seen that
					return nil
				}
				return targets.VerifyDelegate(project, r)
			}
		}
		role, missing, err := b.take(ctx, name, verify)
		if err == nil && missing != nil && name == trust.HeadRole(project) {
			if role, err = b.takeWhole(ctx, project, verify); role != nil {
				missing = nil
			}
		}
		if err != nil {
			return err
		}
		if role != nil && !over(role.Signed.Version) {
			if err := b.takePages(ctx, project, role); err != nil {
				return err
			}
		}
		if missing != nil && over(missing.Version) {
			continue
		}
		if missing != nil && !slices.Contains(b.result.Lost, project) {
			b.result.Lost, b.result.Missing = append(b.result.Lost, project), append(b.result.Missing, *missing)
		}
	}
	return nil
}

// take finds the file of a role that snapshots have named: the first that exists and has valid signatures. If there is
// none, the entry of the newest snapshot stays, and the file is reported as missing.
func (b *rebuilding) take(ctx context.Context, name string, verify func(*trust.Role) error) (*trust.Role, *Missing,
	error) {
	if len(b.named) == 0 || b.torn {
		role, err := b.takeUnnamed(ctx, name, verify)
		if role != nil || err != nil || !b.torn {
			return role, nil, err
		}
	}
	var missing *Missing
	for _, meta := range b.named[name] {
		data, kept, err := b.read(ctx, name, meta)
		if err != nil {
			return nil, nil, err
		}
		why := "the store has lost it"
		if data != nil {
			role, err := trust.Decode[tuf.TargetsType](data)
			if err == nil && role.Signed.Version == meta.Version && trust.Guard(func() error { return verify(role) }) == nil {
				if kept {
					b.objects = append(b.objects, publish.Object{Key: trust.RoleKey(name, meta.Version), Data: data})
					b.result.Restored = append(b.result.Restored, fmt.Sprintf("%d.%s", meta.Version, trust.MetaName(name)))
				}
				b.meta[trust.MetaName(name)] = meta
				b.result.Roles[name] = meta.Version
				return role, nil, nil
			}
			why = "it is not signed by keys that may"
		}
		if missing == nil {
			missing = &Missing{Role: name, Version: meta.Version, Why: why}
			b.meta[trust.MetaName(name)] = meta
		}
	}
	return nil, missing, nil
}

// takeUnnamed finds the newest file of a role with valid signatures if the snapshot that named it is lost, since hosts
// may have seen that file.
func (b *rebuilding) takeUnnamed(ctx context.Context, name string, verify func(*trust.Role) error) (*trust.Role,
	error) {
	versions := slices.Clone(b.versions[name])
	if list := b.named[name]; len(list) > 0 {
		versions = slices.DeleteFunc(versions, func(v int64) bool { return v <= list[0].Version })
	}
	role, data, err := newestGood(ctx, b.Publisher, name, versions, verify)
	if role != nil {
		b.meta[trust.MetaName(name)] = publish.MetaFile(role.Signed.Version, data)
		b.result.Roles[name] = role.Signed.Version
		b.result.Unnamed = append(b.result.Unnamed, name)
	}
	return role, err
}

// read returns the file that a snapshot describes, from the store or from this publisher's copies. data is nil if
// neither has that file.
func (b *rebuilding) read(ctx context.Context, name string, meta *tuf.MetaFiles) (data []byte, kept bool, err error) {
	data, err = trust.ReadMetadata(ctx, b.Publisher.Store, trust.RoleKey(name, meta.Version))
	if err == nil && meta.VerifyLengthHashes(data) == nil {
		return data, false, nil
	}
	if err := publish.Unanswered(err); err != nil {
		return nil, false, err
	}
	for _, kept := range []func(string) ([]byte, error){b.Client.Kept, b.Client.KeptList} {
		data, err = kept(name)
		if err != nil || data != nil && meta.VerifyLengthHashes(data) == nil {
			return data, err == nil, err
		}
	}
	return nil, false, nil
}
