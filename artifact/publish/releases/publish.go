// Package releases publishes artifacts as versions of projects, points channels at versions, and withdraws versions.
package releases

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Request describes a release to publish.
type Request struct {
	Project string
	Version string
	File    string // the artifact
	Channel string // to point at it; empty for none
	Plain   bool   // without the lists with which hosts fetch it in blocks and chunks
	New     bool   // even if the name looks mistyped, or the artifact names another project or version
	// Check, if not nil, checks the unpacked tree of the artifact before anything is uploaded.
	Check func(ctx context.Context, tree string) error
	// Progress, if not nil, is called with the number of bytes of the artifact, or of its chunks, that were uploaded.
	Progress func(what string, done, total int64)
	// Staged, if not nil, uploaded the artifact while it was packed.
	Staged *blobs.Stage
	Force  bool // even if the store has an unsigned artifact of this version with other bytes
	// After is the release from which this one was made, if it was in Channel; empty for none. If the channel names
	// another release now, the error is a *Moved.
	After artifact.Digest

	unpacked bool // only what needs no artifact is checked
}

// Publish uploads an artifact, signs it as a version of its project, and points a channel at it. If the same bytes are
// already published under the version, only the channel changes; other bytes are an *Immutable. If the keyring has the
// targets key, a new project is delegated to a key that is made for it.
func Publish(ctx context.Context, p *publish.Publisher, r Request) (artifact.Release, error) {
	if err := r.check(); err != nil {
		return artifact.Release{}, publish.MistakeOf(err)
	}
	seen, err := trust.Remembers(p.Seen)
	if err != nil {
		return artifact.Release{}, err
	}
	r.Force = r.Force || seen // a publisher that has seen the store notices an older state of it
	release, err := examine(ctx, r)
	if err != nil {
		return artifact.Release{}, err
	}
	if err := checkMistyped(ctx, p, release, r); err != nil {
		return artifact.Release{}, err
	}
	p = r.publisher(p)
	delegated, err := mayPublish(ctx, p, release, r)
	if err != nil {
		return artifact.Release{}, err
	}
	ready, err := describe(ctx, release, r)
	if err != nil {
		return artifact.Release{}, err
	}
	defer ready.close()
	if !delegated {
		if err := delegateNew(ctx, p, release, r); err != nil {
			return artifact.Release{}, err
		}
	}
	for range publish.Attempts {
		if err = uploadAndSign(ctx, p, ready, r); !errors.Is(err, errWithdrawn) {
			break
		}
	}
	return release, err
}

// publisher returns a publisher that takes names that look mistyped, if they are meant.
func (r Request) publisher(p *publish.Publisher) *publish.Publisher {
	if !r.New || p.New {
		return p
	}
	meant := *p
	meant.New = true
	return &meant
}

// mayPublish returns an error, before anything is written or uploaded, for a version whose metadata could not be
// signed: the version exists with other bytes or is withdrawn, the project would be too large for its readers, a key or
// its passphrase is missing, or hosts would refuse it. delegated reports whether the store already delegates the
// project.
func mayPublish(ctx context.Context, p *publish.Publisher, release artifact.Release, r Request) (delegated bool,
	err error) {
	n, err := p.Read(ctx)
	if err != nil {
		return false, err
	}
	delegated = n.Delegates(r.Project)
	if !delegated && (!p.Keys.Has(tuf.RoleTargets) || p.Hand != nil) {
		return false, diag.Unpublished.Hint(fmt.Errorf("%w: %s", trust.ErrNoProject, r.Project),
			"ask who holds the targets key to run `corpus project add %s --key %s.pub`", r.Project, r.Project)
	}
	if err := add(ctx, n, described{release: release}, r); err != nil {
		return false, err
	}
	if !r.Force {
		if err := untaken(ctx, p, release); err != nil {
			return false, err
		}
	}
	if _, err := n.Split(ctx, r.Project); err != nil {
		return false, err
	}
	if !delegated { // its key is made after all other checks
		delete(n.Roles, r.Project)
		n.Targets()
	}
	return delegated, n.TryOut(ctx)
}

// delegateNew makes a key for a new project, delegates the project to it, and repeats the checks of mayPublish, since a
// project that was removed gets its versions back.
func delegateNew(ctx context.Context, p *publish.Publisher, release artifact.Release, r Request) error {
	if err := ensureDelegated(ctx, p, r.Project); err != nil {
		return err
	}
	_, err := mayPublish(ctx, p, release, r)
	return err
}

func (r Request) check() error {
	errs := []error{trust.CheckProject(r.Project), artifact.CheckVersion(r.Version)}
	if r.Channel != "" {
		errs = append(errs, artifact.CheckChannel(r.Channel))
	}
	return errors.Join(errs...)
}

// examine reads the artifact's length and digest.
func examine(ctx context.Context, r Request) (artifact.Release, error) {
	format, err := artifact.FormatOf(r.File)
	if err != nil {
		return artifact.Release{}, err
	}
	f, err := walk.OpenFile(r.File)
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

func ensureDelegated(ctx context.Context, p *publish.Publisher, project string) error {
	n, err := p.Read(ctx)
	if err != nil || n.Delegates(project) {
		return err
	}
	made, err := p.Keys.New(project, 1)
	if err != nil {
		return err
	}
	keys, err := p.Keys.Public(project)
	if err == nil {
		err = projects.Add(ctx, p, project, 0, keys...)
	}
	// A key that is not in use would later be taken for the project's key. If the response of the store was lost, the
	// key may be in use.
	if err != nil && len(made) > 0 && !errors.Is(err, store.ErrUnreachable) && ctx.Err() == nil {
		err = errors.Join(err, p.Keys.Forget(project))
	}
	return err
}

func add(ctx context.Context, n *publish.Next, about described, wanted Request) error {
	r, channel := about.release, wanted.Channel
	role, err := n.Project(ctx, r.Project)
	if err != nil {
		return err
	}
	for _, before := range trust.Releases(r.Project, role) {
		if before.Version == r.Version && before.Digest != r.Digest {
			return &Immutable{Release: before, Digest: r.Digest}
		}
	}
	if err := wanted.moved(role); err != nil {
		return err
	}
	yanks, err := trust.Yanks(role)
	if err != nil {
		return err
	}
	if yank, ok := yanks[r.Version]; ok {
		return diag.Withdrawn.Hint(&trust.Withdrawn{Release: r, Yank: yank},
			"publish a corrected tree under a new version, or revert the withdrawal with `corpus yank --undo`")
	}
	sum, err := hex.DecodeString(r.Digest.Hex())
	if err != nil {
		return err
	}
	target := tuf.TargetFile()
	target.Length = r.Length
	target.Hashes = tuf.Hashes{"sha256": sum}
	if err := about.checkLeansOn(role); err != nil {
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
	if wanted.unpacked {
		channels, err := trust.Channels(role)
		if err != nil {
			return err
		}
		return n.CheckChannelName(channel, channels)
	}
	return point(ctx, n, role, artifact.Ref{Project: r.Project, Channel: channel}, r, origin{what: "publish"})
}

// untaken returns an error for a version if the store has an artifact of it with other bytes that no signed metadata
// names. A publisher that has seen the store before notices when it was restored from an older copy. Another publisher
// can only notice such artifacts: hosts may run their bytes, and accept no others under the version.
func untaken(ctx context.Context, p *publish.Publisher, r artifact.Release) error {
	_, name := path.Split(trust.TargetPath(r.Project, r.Version, r.Format))
	for info, err := range p.Store.List(ctx, "deploy/"+r.Project+"/") {
		if errors.Is(err, store.ErrForbidden) {
			return nil
		}
		if err != nil {
			return err
		}
		digest, rest, _ := strings.Cut(path.Base(info.Key), ".")
		if rest == name && digest != r.Digest.Hex() {
			return publish.NewMistake(diag.Version,
				"publish under a new version; if that publish was interrupted and no host can have it, give --force",
				"the store holds %s of %s, with other bytes than this artifact, and nothing signed names it: a publish that "+
					"was interrupted left it, or the store was restored from an older copy and hosts know the version",
				info.Key, info.Modified.UTC().Format(time.RFC3339))
		}
	}
	return nil
}
