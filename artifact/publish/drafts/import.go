package drafts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Imported is the result of Import.
type Imported struct {
	Role    string            `json:"role"`
	Version int64             `json:"version"`
	Store   *roots.InitResult `json:"store,omitempty"` // a store that was set up by its first root
	Root    *roots.Result     `json:"root,omitempty"`  // a root that was replaced

	WithoutChunks []string `json:"without_chunks,omitempty"` // new versions with lost chunks: hosts fetch them whole
}

// Import commits a draft with enough signatures. The required number is read from the store, not from the draft.
func Import(ctx context.Context, p *publish.Publisher, d *publish.Draft) (Imported, error) {
	s, err := d.Summary()
	if err != nil {
		return Imported{}, err
	}
	result := Imported{Role: d.Role, Version: s.Version}
	if d.Role != tuf.RoleRoot {
		return importRole(ctx, p, d, result)
	}
	if d.From == 0 {
		made, err := importFirst(ctx, p, d)
		result.Store = &made
		return result, err
	}
	root, err := importRoot(ctx, p, d)
	result.Root = &root
	return result, err
}

// importRole commits a draft of targets or of a project, and checks whether the store has the chunks of its new
// versions.
func importRole(ctx context.Context, p *publish.Publisher, d *publish.Draft, result Imported) (Imported, error) {
	if d.Role == tuf.RoleTargets {
		if done, err := importTargets(ctx, p, d); done || err != nil {
			return result, err
		}
	}
	var fresh []artifact.Release
	err := p.Change(ctx, func(n *publish.Next) (err error) {
		if err = take(ctx, n, d); err == nil {
			fresh, err = freshReleases(ctx, n, d)
		}
		if err == nil {
			err = uploaded(ctx, p, fresh)
		}
		return err
	})
	if err != nil {
		return result, err
	}
	if result.WithoutChunks, err = incomplete(ctx, p, d.Role, fresh); err != nil {
		return result, fmt.Errorf("%s %d is in force; it is not known whether its chunks exist: %w", result.Role,
			result.Version, err)
	}
	return result, nil
}

// uploaded returns an error for new versions whose artifacts are not in the store, since hosts could not fetch them.
func uploaded(ctx context.Context, p *publish.Publisher, fresh []artifact.Release) error {
	for _, r := range fresh {
		missing, err := blobs.Missing(ctx, p.Store, []string{trust.ObjectKey(r)})
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return publish.NewMistake(diag.Draft,
				"publish the same file with --draft again, which uploads it, and sign that draft; give `corpus gc` a --drafts "+
					"that is longer than signing takes",
				"the artifact of %s is not in the store, as %s: nothing was signed", r, missing[0])
		}
	}
	return nil
}

// importTargets commits a draft of targets to a store whose targets or snapshot are not valid, and signs a new snapshot
// and timestamp. done is false for any other store.
func importTargets(ctx context.Context, p *publish.Publisher, d *publish.Draft) (done bool, err error) {
	err = p.Retry(ctx, func() error {
		n, err := viewBelow(ctx, p)
		if done = err == nil && n.Client.Trusted().Targets[tuf.RoleTargets] == nil; !done {
			return err
		}
		role, err := trust.Decode[tuf.TargetsType](d.Metadata)
		if err != nil {
			return fmt.Errorf("reading the draft of %s: %w", d.Role, err)
		}
		if err := trust.Guard(
			func() error { return n.Client.Trusted().Root.VerifyDelegate(tuf.RoleTargets, role) }); err != nil {
			return lacksSignatures(d, n.Client.Delegation(tuf.RoleTargets), err)
		}
		there, err := recovery.Unverified(ctx, n, tuf.RoleTargets)
		if err == nil && there.Signed.Version != d.From {
			err = publish.Stale(d.Role, "the draft follows version %d of %s, and the store has %d", d.From, d.Role,
				there.Signed.Version)
		}
		if err != nil {
			return err
		}
		data, err := role.ToBytes()
		if err != nil {
			return err
		}
		_, objects, err := recovery.StageRebuild(ctx, n, data)
		if err != nil {
			return err
		}
		n.Strict = true
		if err := n.Rehearse(ctx, objects, true); err != nil {
			return err
		}
		if err := p.Write(ctx, objects); err != nil {
			return err
		}
		return p.Keep(ctx, n.Client, objects)
	})
	return done, err
}

// freshReleases returns the releases that a draft adds to its project.
func freshReleases(ctx context.Context, n *publish.Next, d *publish.Draft) ([]artifact.Release, error) {
	if d.Role == tuf.RoleTargets {
		return nil, nil
	}
	role, err := d.All()
	if err != nil {
		return nil, err
	}
	releases := trust.Releases(d.Role, role)
	old, _, err := n.SignedProject(ctx, d.Role)
	if err != nil || old == nil {
		return releases, err
	}
	if old, _, err = n.Client.Salvage(ctx, d.Role, old); err != nil {
		return nil, err
	}
	before := trust.Releases(d.Role, old)
	return slices.DeleteFunc(releases, func(r artifact.Release) bool { return slices.Contains(before, r) }), nil
}

// take sets the next version of a role to the content of a draft.
func take(ctx context.Context, n *publish.Next, d *publish.Draft) error {
	role, err := d.All()
	if err != nil {
		return fmt.Errorf("reading the draft of %s: %w", d.Role, err)
	}
	var current int64
	if _, meta := n.Client.Current(d.Role); meta != nil {
		current = meta.Version
	}
	if current != d.From || role.Signed.Version <= current {
		return publish.Stale(d.Role, "the draft follows version %d of %s, and the store has %d", d.From, d.Role, current)
	}
	files, err := files(n, d)
	if err != nil {
		return err
	}
	if err := provenMoves(ctx, n, d.Role, role); err != nil {
		return err
	}
	n.Advice = func(of string) string { // a draft of targets may take keys of a project away
		project, _, _ := strings.Cut(of, "/")
		return projects.RevokeSteps(project)(of)
	}
	n.Ready[d.Role] = files
	return nil
}

// provenMoves returns an error for a draft that moves a channel without the proof that the channel requires.
func provenMoves(ctx context.Context, n *publish.Next, project string, role *trust.Role) error {
	if project == tuf.RoleTargets {
		return nil
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return err
	}
	var before map[string]trust.Pointer
	if old, _, err := n.SignedProject(ctx, project); err != nil {
		return err
	} else if old != nil {
		if before, err = trust.Channels(old); err != nil {
			return err
		}
	}
	for name, pointer := range channels {
		if was, ok := before[name]; ok && was.Digest == pointer.Digest && was.Version == pointer.Version &&
			was.Serial == pointer.Serial {
			continue
		}
		if _, err := n.Client.CheckPointer(artifact.Ref{Project: project, Channel: name}, pointer,
			n.Publisher.Time()); err != nil {
			return err
		}
	}
	return nil
}

// importFirst sets up a store with a first root that several people have signed.
func importFirst(ctx context.Context, p *publish.Publisher, d *publish.Draft) (roots.InitResult, error) {
	root, err := trust.Decode[tuf.RootType](d.Metadata)
	if err != nil {
		return roots.InitResult{}, err
	}
	if err := trust.Guard(func() error { return root.VerifyDelegate(tuf.RoleRoot, root) }); err != nil {
		return roots.InitResult{}, lacksSignatures(d, trust.RootDelegation(root, tuf.RoleRoot), err)
	}
	data, err := root.ToBytes()
	if err != nil {
		return roots.InitResult{}, err
	}
	return roots.InitWith(ctx, p, data)
}

// importRoot replaces the root with one that several people have signed.
func importRoot(ctx context.Context, p *publish.Publisher, d *publish.Draft) (roots.Result, error) {
	n, err := roots.Read(ctx, p)
	if err != nil {
		return roots.Result{}, err
	}
	before := n.Client.Trusted().Root
	root, err := trust.Decode[tuf.RootType](d.Metadata)
	if err != nil {
		return roots.Result{}, err
	}
	if root.Signed.Version != before.Signed.Version+1 {
		return roots.Result{}, publish.Stale(tuf.RoleRoot, "the draft is root %d, and the store has root %d",
			root.Signed.Version, before.Signed.Version)
	}
	for _, by := range slices.Backward([]*publish.RootRole{root, before}) {
		if err := trust.Guard(func() error { return by.VerifyDelegate(tuf.RoleRoot, root) }); err != nil {
			return roots.Result{}, lacksSignatures(d, trust.RootDelegation(by, tuf.RoleRoot), err)
		}
	}
	data, err := root.ToBytes()
	if err != nil {
		return roots.Result{}, err
	}
	result, placed, err := roots.Place(ctx, n, before, root, data)
	if errors.Is(err, store.ErrPrecondition) && !placed {
		err = publish.Stale(tuf.RoleRoot, "the draft is root %d, and the store has one by now", root.Signed.Version)
	}
	return result, err
}

// incomplete returns the versions of releases whose chunk index names packs that the store does not have.
func incomplete(ctx context.Context, p *publish.Publisher, project string,
	releases []artifact.Release) (without []string, err error) {
	if len(releases) == 0 {
		return nil, nil
	}
	n, err := p.Read(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := n.Client.Whole(ctx, project); err != nil {
		return nil, err
	}
	there, err := blobs.Packs(ctx, p.Store, project)
	if err != nil {
		return nil, err
	}
	for _, r := range releases {
		index, err := blobs.FetchIndex(ctx, n.Client, r)
		if errors.Is(err, trust.ErrNoSidecar) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(index.Packs, func(pack artifact.Digest) bool { return !there(pack) }) {
			continue
		}
		without = append(without, r.Version)
	}
	return without, nil
}
