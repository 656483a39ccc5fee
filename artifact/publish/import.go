package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Imported says what committing a draft did.
type Imported struct {
	Role    string      `json:"role"`
	Version int64       `json:"version"`
	Store   *InitResult `json:"store,omitempty"` // a store that was set up by its first root
	Root    *RootResult `json:"root,omitempty"`  // a root that was replaced

	WithoutChunks []string `json:"without_chunks,omitempty"` // new versions whose chunks are gone: hosts fetch them whole
}

// Import commits a draft that enough people have signed. Whether they are enough is asked of the
// store, not of the draft.
func (p *Publisher) Import(ctx context.Context, d *Draft) (Imported, error) {
	s, err := d.Summary()
	if err != nil {
		return Imported{}, err
	}
	result := Imported{Role: d.Role, Version: s.Version}
	if d.Role != tuf.RoleRoot {
		return p.importRole(ctx, d, result)
	}
	if d.From == 0 {
		made, err := p.importFirst(ctx, d)
		result.Store = &made
		return result, err
	}
	root, err := p.importRoot(ctx, d)
	result.Root = &root
	return result, err
}

// importRole commits a draft of targets or a project, and looks whether its chunks waited for it.
func (p *Publisher) importRole(ctx context.Context, d *Draft, result Imported) (Imported, error) {
	if d.Role == tuf.RoleTargets {
		if done, err := p.importTargets(ctx, d); done || err != nil {
			return result, err
		}
	}
	var fresh []artifact.Release
	err := p.Change(ctx, func(n *Next) (err error) {
		if err = n.take(ctx, d); err == nil {
			fresh, err = n.fresh(ctx, d)
		}
		if err == nil {
			err = p.uploaded(ctx, fresh)
		}
		return err
	})
	if err != nil {
		return result, err
	}
	if result.WithoutChunks, err = p.incomplete(ctx, d.Role, fresh); err != nil {
		return result, fmt.Errorf("%s %d is in force; whether its chunks are there cannot be told: %w", result.Role, result.Version, err)
	}
	return result, nil
}

// uploaded refuses new versions whose artifact is not in the store: hosts could not fetch them.
func (p *Publisher) uploaded(ctx context.Context, fresh []artifact.Release) error {
	for _, r := range fresh {
		missing, err := blobs.Missing(ctx, p.Store, []string{trust.ObjectKey(r)})
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return mistake("publish the same file with --draft again, which uploads it, and sign that draft; give `corpus gc` a --drafts that is longer than signing takes",
				"the artifact of %s is not in the store, as %s: nothing was signed", r, missing[0])
		}
	}
	return nil
}

// importTargets commits a draft of targets to a store whose own targets do not hold, or whose snapshot
// does not: both snapshot and timestamp are made again around it. It reports false for any other store.
func (p *Publisher) importTargets(ctx context.Context, d *Draft) (done bool, err error) {
	err = p.retry(ctx, func() error {
		n, err := p.lookBelow(ctx)
		if done = err == nil && n.Client.Trusted().Targets[tuf.RoleTargets] == nil; !done {
			return err
		}
		role, err := trust.Decode[tuf.TargetsType](d.Metadata)
		if err != nil {
			return fmt.Errorf("reading the draft of %s: %w", d.Role, err)
		}
		if err := trust.Guard(func() error { return n.Client.Trusted().Root.VerifyDelegate(tuf.RoleTargets, role) }); err != nil {
			return unsigned(d, n.Client.Delegation(tuf.RoleTargets), err)
		}
		there, err := n.unverified(ctx, tuf.RoleTargets)
		if err == nil && there.Signed.Version != d.From {
			err = stale(d.Role, "the draft follows version %d of %s, and the store has %d", d.From, d.Role, there.Signed.Version)
		}
		if err != nil {
			return err
		}
		data, err := role.ToBytes()
		if err != nil {
			return err
		}
		_, objects, err := n.stageRebuild(ctx, data)
		if err != nil {
			return err
		}
		n.strict = true
		if err := n.rehearse(ctx, objects, true); err != nil {
			return err
		}
		if err := p.write(ctx, objects); err != nil {
			return err
		}
		return p.keep(ctx, n.Client, objects)
	})
	return done, err
}

// fresh are the releases that a draft brings to its project.
func (n *Next) fresh(ctx context.Context, d *Draft) ([]artifact.Release, error) {
	if d.Role == tuf.RoleTargets {
		return nil, nil
	}
	role, err := d.all()
	if err != nil {
		return nil, err
	}
	releases := trust.Releases(d.Role, role)
	old, _, err := n.standing(ctx, d.Role)
	if err != nil || old == nil {
		return releases, err
	}
	if old, _, err = n.Client.Salvage(ctx, d.Role, old); err != nil {
		return nil, err
	}
	before := trust.Releases(d.Role, old)
	return slices.DeleteFunc(releases, func(r artifact.Release) bool { return slices.Contains(before, r) }), nil
}

// take puts a draft into the next version of the store.
func (n *Next) take(ctx context.Context, d *Draft) error {
	role, err := d.all()
	if err != nil {
		return fmt.Errorf("reading the draft of %s: %w", d.Role, err)
	}
	var current int64
	if _, meta := n.Client.Current(d.Role); meta != nil {
		current = meta.Version
	}
	if current != d.From || role.Signed.Version <= current {
		return stale(d.Role, "the draft follows version %d of %s, and the store has %d", d.From, d.Role, current)
	}
	files, err := n.files(d)
	if err != nil {
		return err
	}
	if err := n.provenMoves(ctx, d.Role, role); err != nil {
		return err
	}
	n.advice = func(of string) string { // a draft of targets may take keys of a project away
		project, _, _ := strings.Cut(of, "/")
		return revokeSteps(project)(of)
	}
	n.ready[d.Role] = files
	return nil
}

// provenMoves refuses a draft that moves a channel without the proof which that requires.
func (n *Next) provenMoves(ctx context.Context, project string, role *trust.Role) error {
	if project == tuf.RoleTargets {
		return nil
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return err
	}
	var before map[string]trust.Pointer
	if old, _, err := n.standing(ctx, project); err != nil {
		return err
	} else if old != nil {
		if before, err = trust.Channels(old); err != nil {
			return err
		}
	}
	for name, pointer := range channels {
		if was, ok := before[name]; ok && was.Digest == pointer.Digest && was.Version == pointer.Version && was.Serial == pointer.Serial {
			continue
		}
		if _, err := n.Client.CheckPointer(artifact.Ref{Project: project, Channel: name}, pointer, n.publisher.Time()); err != nil {
			return err
		}
	}
	return nil
}

// verify holds a role's signatures against who may sign it.
func (n *Next) verify(name string, role *trust.Role) error {
	if name == tuf.RoleTargets {
		return n.Client.Trusted().Root.VerifyDelegate(name, role)
	}
	return n.Client.Trusted().Targets[tuf.RoleTargets].VerifyDelegate(name, role)
}

// unsigned says which signatures a draft lacks.
func unsigned(d *Draft, may trust.Delegation, err error) error {
	refused := &trust.Refused{Check: trust.CheckSignature, Of: "the draft of " + d.Role, By: trust.SignedBy(d.Metadata), May: may, Err: err}
	return diag.WithHint(refused, "let more of these keys' owners run `corpus sign FILE`")
}

// importFirst sets a store up under a root that several people signed.
func (p *Publisher) importFirst(ctx context.Context, d *Draft) (InitResult, error) {
	root, err := trust.Decode[tuf.RootType](d.Metadata)
	if err != nil {
		return InitResult{}, err
	}
	if err := trust.Guard(func() error { return root.VerifyDelegate(tuf.RoleRoot, root) }); err != nil {
		return InitResult{}, unsigned(d, trust.RootDelegation(root, tuf.RoleRoot), err)
	}
	data, err := root.ToBytes()
	if err != nil {
		return InitResult{}, err
	}
	return p.initWith(ctx, data)
}

// importRoot replaces the root by one that several people signed.
func (p *Publisher) importRoot(ctx context.Context, d *Draft) (RootResult, error) {
	n, err := p.readRoot(ctx)
	if err != nil {
		return RootResult{}, err
	}
	before := n.Client.Trusted().Root
	root, err := trust.Decode[tuf.RootType](d.Metadata)
	if err != nil {
		return RootResult{}, err
	}
	if root.Signed.Version != before.Signed.Version+1 {
		return RootResult{}, stale(tuf.RoleRoot, "the draft is root %d, and the store has root %d", root.Signed.Version, before.Signed.Version)
	}
	for _, by := range slices.Backward([]*rootRole{root, before}) {
		if err := trust.Guard(func() error { return by.VerifyDelegate(tuf.RoleRoot, root) }); err != nil {
			return RootResult{}, unsigned(d, trust.RootDelegation(by, tuf.RoleRoot), err)
		}
	}
	data, err := root.ToBytes()
	if err != nil {
		return RootResult{}, err
	}
	placed := false
	result, err := n.carryOut(ctx, before, roots{final: root, direct: rootObject(root.Signed.Version, data)}, &placed)
	if errors.Is(err, store.ErrPrecondition) && !placed {
		err = stale(tuf.RoleRoot, "the draft is root %d, and the store has one by now", root.Signed.Version)
	}
	return result, err
}
