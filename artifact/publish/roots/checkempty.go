package roots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// checkEmpty returns an error if the store has metadata, or if the directory of keys belongs to another store. It
// accepts the files of an interrupted Init: the same root, targets without projects, and snapshots.
func checkEmpty(ctx context.Context, p *publish.Publisher, root []byte) error {
	own, err := seenOwn(p, root)
	if err != nil {
		return fmt.Errorf("looking for the trust of %s: %w", p.Seen, err)
	}
	if own {
		return publish.NewMistake(diag.StoreURL,
			"take another directory for --keys; if this store lost all its files, restore it from a backup or a copy, and "+
				"then: corpus refresh --rebuild; where none is left, see docs/trust.md#the-store-lost-all-its-files",
			"these keys have set up a store before (%s)", p.Seen)
	}
	if err := checkRootFile(ctx, p); err != nil {
		return err
	}
	if _, err := p.TimestampETag(ctx); err == nil {
		return setUpBefore(trust.TimestampKey)
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	versions, err := p.Versions(ctx)
	if err != nil {
		return err
	}
	for name, numbers := range versions {
		if err := checkLeft(ctx, p, name, numbers, root); err != nil {
			return err
		}
	}
	return nil
}

// seenOwn reports whether this publisher's copies are of a store that shares keys with a root. If the keys never set up
// a store, and failed to publish into another one, the copies are of that one only.
func seenOwn(p *publish.Publisher, root []byte) (bool, error) {
	pinned, err := trust.Pinned(p.Seen)
	if err != nil || !pinned {
		return false, err
	}
	data, found, err := walk.Read(filepath.Join(p.Seen, trust.MetaName(tuf.RoleRoot)))
	if err != nil || !found {
		return true, err
	}
	seen, errSeen := trust.Decode[tuf.RootType](data)
	fresh, errFresh := trust.Decode[tuf.RootType](root)
	if errSeen != nil || errFresh != nil {
		return true, nil //nolint:nilerr // unreadable copies may be of this store
	}
	for id := range fresh.Signed.Keys {
		if seen.Signed.Keys[id] != nil {
			return true, nil
		}
	}
	return false, nil
}

// setSeenAside renames the directory with copies of another store.
func setSeenAside(p *publish.Publisher) error {
	if found, err := walk.Named(p.Seen); err != nil || !found {
		return err
	}
	return durable.Rename(p.Seen, p.Seen+".other-"+p.Time().UTC().Format("20060102T150405"))
}

// checkRootFile returns an error if there is a root.json that an interrupted Init of this store has not left. Hosts
// trust that file: another root in its place, even one of the same keys, would be refused by all of them.
func checkRootFile(ctx context.Context, p *publish.Publisher) error {
	if p.Keys.Dir == "" {
		return nil
	}
	file := filepath.Join(p.Keys.Dir, RootName)
	there, err := walk.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, err := trust.ReadMetadata(ctx, p.Store, trust.RoleKey(tuf.RoleRoot, 1))
	switch {
	case err == nil && bytes.Equal(first, there):
		return nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	}
	return publish.NewMistake(diag.Root,
		"if this store lost its files, restore it from a backup or a copy, and then: corpus refresh --rebuild; for "+
			"another store take another directory for --keys; only if no host trusts that root any more, move the file away",
		"%s is the root of another store, or of this one before it lost its files", file)
}

// checkLeft returns an error for versions of a role that an interrupted Init cannot have left.
func checkLeft(ctx context.Context, p *publish.Publisher, name string, versions []int64, root []byte) error {
	newest := trust.RoleKey(name, versions[0])
	switch name {
	case tuf.RoleSnapshot:
		return nil
	case tuf.RoleRoot, tuf.RoleTargets:
	default:
		return setUpBefore(newest)
	}
	data, err := trust.ReadMetadata(ctx, p.Store, newest)
	if err != nil {
		return err
	}
	if name == tuf.RoleRoot && versions[0] == 1 && sameKeys(data, root) {
		return nil
	}
	if name == tuf.RoleTargets {
		targets, err := trust.Decode[tuf.TargetsType](data)
		if err == nil && (targets.Signed.Delegations == nil || len(targets.Signed.Delegations.Roles) == 0) {
			return nil
		}
	}
	return setUpBefore(newest)
}

func setUpBefore(key string) error {
	return publish.NewMistake(diag.StoreURL,
		"publish into it, or take an empty prefix; where it lost "+trust.TimestampKey+
			", `corpus refresh --rebuild` makes that again",
		"the store was set up before: %s exists", key)
}
