package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Request says what to publish.
type Request struct {
	Project string
	Version string
	File    string // the artifact
	Channel string // to point at it; empty for none
	Plain   bool   // without the lists by which hosts fetch it in blocks and chunks
	New     bool   // although the project or the channel is new and named nearly as another, or the artifact says that it is another's or another version
	// Check refuses the unpacked tree of the artifact, before anything of it is uploaded; nil for no check.
	Check func(ctx context.Context, tree string) error
	Force bool // although the store holds an artifact of this version with other bytes, which nothing signed names
}

// Publish uploads an artifact, signs it as a version of its project, and points a channel at it.
// The same bytes under the same version again change nothing but the channel; other bytes are an
// *Immutable. While the keyring holds the targets key, a project that is new is delegated to a key
// made for it.
func (p *Publisher) Publish(ctx context.Context, r Request) (artifact.Release, error) {
	if err := r.check(); err != nil {
		return artifact.Release{}, mistakeOf(err)
	}
	seen, err := trust.Remembers(p.Seen)
	if err != nil {
		return artifact.Release{}, err
	}
	r.Force = r.Force || seen // a publisher that has seen the store notices when it went back
	release, err := p.examine(ctx, r)
	if err != nil {
		return artifact.Release{}, err
	}
	if err := p.meant(ctx, release, r); err != nil {
		return artifact.Release{}, err
	}
	if r.New && !p.New {
		meant := *p
		meant.New = true
		p = &meant
	}
	delegated, err := p.mayPublish(ctx, release, r)
	if err != nil {
		return artifact.Release{}, err
	}
	ready, err := p.describe(ctx, release, r)
	if err != nil {
		return artifact.Release{}, err
	}
	defer ready.close()
	if !delegated {
		if err := p.delegateNew(ctx, release, r); err != nil {
			return artifact.Release{}, err
		}
	}
	for range attempts {
		if err = p.publish(ctx, ready, r); !errors.Is(err, errWithdrawn) {
			break
		}
	}
	return release, err
}

// mayPublish refuses, before anything is written or uploaded, a version whose metadata could not be signed: it is taken by
// other bytes, withdrawn, the project would be too large for its readers, a key or its passphrase is missing, or hosts would
// refuse it. It reports whether the store delegates the project already.
func (p *Publisher) mayPublish(ctx context.Context, release artifact.Release, r Request) (delegated bool, err error) {
	n, err := p.Read(ctx)
	if err != nil {
		return false, err
	}
	delegated = n.delegates(r.Project)
	if !delegated && (!p.Keys.Has(tuf.RoleTargets) || p.Hand != nil) {
		return false, diag.WithHint(fmt.Errorf("%w: %s", trust.ErrNoProject, r.Project),
			"ask who holds the targets key to run `corpus project add %s --key %s.pub`", r.Project, r.Project)
	}
	if err := n.publish(ctx, described{release: release}, r.Channel); err != nil {
		return false, err
	}
	if !r.Force {
		if err := p.untaken(ctx, release); err != nil {
			return false, err
		}
	}
	if _, err := n.split(ctx, r.Project); err != nil {
		return false, err
	}
	if !delegated { // its key is made once all else is checked
		delete(n.Roles, r.Project)
		n.targets()
	}
	return delegated, n.tryOut(ctx)
}

// tryOut does all of a change except writing it: it signs with the keys at hand, and checks as a host does.
func (n *Next) tryOut(ctx context.Context) error {
	p := n.publisher
	if p.Hand != nil {
		for name := range n.Roles {
			if _, _, err := p.atHand(name, n.Client.Delegation(name)); err != nil {
				return err
			}
		}
		return nil
	}
	objects, err := n.stage(ctx, n.Client.Delegation)
	if err != nil || p.AtOnce {
		return err
	}
	n.strict = true
	return n.rehearse(ctx, objects, false)
}

// delegateNew delegates a project that is new to a key made for it, and checks again what may be published: a project
// that was removed comes back with its versions.
func (p *Publisher) delegateNew(ctx context.Context, release artifact.Release, r Request) error {
	if err := p.ensureDelegated(ctx, r.Project); err != nil {
		return err
	}
	_, err := p.mayPublish(ctx, release, r)
	return err
}

// publish uploads and signs an artifact and all that belongs to it.
func (p *Publisher) publish(ctx context.Context, ready *prepared, r Request) error {
	release, about := ready.release, ready.described
	about.sidecars = maps.Clone(ready.sidecars)
	if !r.Plain {
		if err := p.addChunks(ctx, &about, ready.root, ready.manifest); err != nil {
			return err
		}
	}
	if err := errors.Join(p.upload(ctx, release, r.File), p.uploadSidecars(ctx, about)); err != nil {
		return err
	}
	if p.Hand != nil {
		if err := blobs.LeaveNote(ctx, p.Store, release, about.objects(), about.packs); err != nil {
			return err
		}
	}
	err := p.Change(ctx, func(n *Next) error {
		n.strict = true
		return n.publish(ctx, about, r.Channel)
	})
	if err != nil {
		return err
	}
	return p.keepThere(ctx, about, r.File)
}

// keepThere uploads again what a garbage collection removed while it was not signed: an object that an
// earlier attempt had left long ago was found in the store and not uploaded.
func (p *Publisher) keepThere(ctx context.Context, about described, file string) error {
	missing, err := blobs.Missing(ctx, p.Store, about.objects())
	if err != nil || len(missing) == 0 {
		return err
	}
	return errors.Join(p.upload(ctx, about.release, file), p.uploadSidecars(ctx, about))
}

func (r Request) check() error {
	errs := []error{trust.CheckProject(r.Project), artifact.CheckVersion(r.Version)}
	if r.Channel != "" {
		errs = append(errs, artifact.CheckChannel(r.Channel))
	}
	return errors.Join(errs...)
}

// examine reads the artifact for its length and digest.
func (p *Publisher) examine(ctx context.Context, r Request) (artifact.Release, error) {
	format, err := artifact.FormatOf(r.File)
	if err != nil {
		return artifact.Release{}, err
	}
	f, err := os.Open(r.File)
	if err != nil {
		return artifact.Release{}, fmt.Errorf("reading the artifact: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, artifact.Stoppable(ctx, f))
	if err != nil {
		return artifact.Release{}, fmt.Errorf("reading the artifact: %w", err)
	}
	return artifact.Release{
		Project: r.Project, Version: r.Version, Format: format,
		Digest: artifact.NewDigest([32]byte(sum.Sum(nil))), Length: size,
	}, nil
}

func (p *Publisher) ensureDelegated(ctx context.Context, project string) error {
	n, err := p.Read(ctx)
	if err != nil || n.delegates(project) {
		return err
	}
	made, err := p.Keys.New(project, 1)
	if err != nil {
		return err
	}
	keys, err := p.Keys.Public(project)
	if err == nil {
		err = p.AddProject(ctx, project, 0, keys...)
	}
	// A key that was made for nothing would be taken for the project's later. Where the answer of the store was lost
	// it may be in force.
	if err != nil && len(made) > 0 && !errors.Is(err, store.ErrUnreachable) && ctx.Err() == nil {
		err = errors.Join(err, p.Keys.Forget(project))
	}
	return err
}

// upload writes the artifact's object, unless it is there.
func (p *Publisher) upload(ctx context.Context, r artifact.Release, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("reading the artifact: %w", err)
	}
	defer f.Close()
	if err := blobs.PutOnce(ctx, p.Store, trust.ObjectKey(r), f, r.Length, r.Digest); err != nil {
		return fmt.Errorf("uploading %s: %w", r, err)
	}
	return nil
}

// Immutable says that a version is taken by other bytes.
type Immutable struct {
	Release artifact.Release // as it was published
	Digest  artifact.Digest  // of what was to be published
}

func (e *Immutable) Error() string {
	return fmt.Sprintf("%s is published with digest %s, and this artifact has %s", e.Release, e.Release.Digest, e.Digest)
}

// Hint says how to publish a change.
func (e *Immutable) Hint() string { return "a changed tree is a new version: publish it under one" }

func (n *Next) publish(ctx context.Context, about described, channel string) error {
	r := about.release
	role, err := n.project(ctx, r.Project)
	if err != nil {
		return err
	}
	for _, before := range trust.Releases(r.Project, role) {
		if before.Version == r.Version && before.Digest != r.Digest {
			return &Immutable{Release: before, Digest: r.Digest}
		}
	}
	yanks, err := trust.Yanks(role)
	if err != nil {
		return err
	}
	if yank, ok := yanks[r.Version]; ok {
		return diag.WithHint(&trust.Withdrawn{Release: r, Yank: yank}, "publish a mended tree under a new version, or take it back with `corpus yank --undo`")
	}
	sum, err := hex.DecodeString(r.Digest.Hex())
	if err != nil {
		return err
	}
	target := tuf.TargetFile()
	target.Length = r.Length
	target.Hashes = tuf.Hashes{"sha256": sum}
	if err := about.stands(role); err != nil {
		return err
	}
	if before := role.Signed.Targets[trust.TargetPath(r.Project, r.Version, r.Format)]; before != nil {
		target.Custom = before.Custom
	}
	role.Signed.Targets[trust.TargetPath(r.Project, r.Version, r.Format)] = target
	if err := about.sign(role); err != nil {
		return err
	}
	if channel == "" {
		return nil
	}
	return n.point(ctx, role, artifact.Ref{Project: r.Project, Channel: channel}, r, "")
}

// uploadSidecars writes what will be signed beside the artifact.
func (p *Publisher) uploadSidecars(ctx context.Context, d described) error {
	for kind, data := range d.sidecars {
		digest := artifact.NewDigest(sha256.Sum256(data))
		if err := blobs.PutOnce(ctx, p.Store, trust.SidecarKey(d.release, kind, digest), bytes.NewReader(data), int64(len(data)), digest); err != nil {
			return fmt.Errorf("uploading the %s of %s: %w", kind, d.release, err)
		}
	}
	return nil
}
