package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// fetch makes both releases of a pair directories on this host. One that is there is complete,
// since it got its name last.
func (r *run) fetch(ctx context.Context, client *trust.Client, pair ledger.Pair) error {
	var missing []artifact.Release
	for _, release := range pair.Releases() {
		has, err := r.holds(release)
		if err != nil {
			return fmt.Errorf("looking for %s: %w", release, err)
		}
		if !has {
			missing = append(missing, release)
		}
	}
	if err := r.tidy(pair, missing); err != nil {
		return err
	}
	// Little is live at any time and much passes through: collecting earlier costs next to nothing
	// and keeps the peak down.
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	group, ctx := errgroup.WithContext(ctx)
	for _, release := range missing {
		group.Go(func() error { return vouched(client, release, r.fetchRelease(ctx, client, release)) })
	}
	if err := group.Wait(); err != nil {
		return explainSpace(err)
	}
	return r.tidy(pair, nil)
}

// has reports whether a release can be used on this host now: what is chosen among several has to be there and be
// readable. What decides that a release is gone asks holds.
func (a *Agent) has(release artifact.Release) bool {
	held, err := a.holds(release)
	return held && err == nil
}

// holds reports whether a release is unpacked on this host. A directory that holds nothing of what is listed of the
// release, such as an empty one, is what the repair of a filesystem leaves, or something else's. One that cannot be read
// is an error. What is no directory, such as a link that leads nowhere, is set aside before the release is fetched.
func (a *Agent) holds(release artifact.Release) (bool, error) {
	dir, err := os.Open(a.project(release.Project).Release(release.Dir()))
	if err != nil && nowhere(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil && !nowhere(err) {
		return false, fmt.Errorf("listing %s: %w", dir.Name(), err)
	}
	if len(names) == 0 {
		return false, nil
	}
	list, err := a.list(release)
	if err != nil {
		return false, err
	}
	return list == nil || len(list.Entries) == 0 || slices.ContainsFunc(list.Entries, func(e manifest.Entry) bool { return slices.Contains(names, e.Name) }), nil
}

// holdsAll is holds for each release of a pair.
func (a *Agent) holdsAll(p ledger.Pair) (bool, error) {
	for _, release := range p.Releases() {
		if held, err := a.holds(release); err != nil || !held {
			return false, err
		}
	}
	return true, nil
}

// vouched makes a refusal tell who signed what was refused.
func vouched(client *trust.Client, release artifact.Release, err error) error {
	var hostile *unpack.Hostile
	if errors.As(err, &hostile) {
		return fmt.Errorf("%w; signed by %s", err, client.Signers(release.Project))
	}
	return client.Vouch(release.Project, err)
}

func explainSpace(err error) error {
	if full(err) {
		return diag.WithHint(err, "make room, or lower keep.releases in agent.yaml; nothing on the host was changed")
	}
	return err
}

func (r *run) fetchRelease(ctx context.Context, client *trust.Client, release artifact.Release) (err error) {
	if err := durable.MkdirAll(r.Layout.Incoming(), 0o700); err != nil {
		return fmt.Errorf("fetching %s: %w", release, err)
	}
	if done, err := r.adopt(ctx, client, release); done || err != nil {
		return err
	}
	if done, err := r.fetchDelta(ctx, client, release); done || err != nil {
		return err
	}
	in, err := r.arrive(ctx, client, release)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.end(err)) }()
	return r.place(ctx, client, release, func(dir *os.Root) (*manifest.Manifest, error) {
		unpacked, err := unpack.Into(ctx, in.Verified, dir, r.limits())
		return unpacked.Tree, err
	}, func() error { return in.end(nil) })
}

// arrival is an artifact on its way: a file that outlives a run, where its blocks can be verified one
// by one, or else a temporary one.
type arrival struct {
	*trust.Verified
	file  string
	ended bool
}

// arrive starts to fetch an artifact by its blocks, or fetches it as a whole where it was published
// without a list of them.
func (r *run) arrive(ctx context.Context, client *trust.Client, release artifact.Release) (*arrival, error) {
	progress := r.progress(release, release.Length)
	signed, err := client.FetchSidecar(ctx, release, trust.KindBlocks)
	if errors.Is(err, trust.ErrNoSidecar) {
		return r.arriveWhole(ctx, client, release, progress)
	}
	if err != nil {
		return nil, err
	}
	blocks, err := trust.ParseBlocks(signed)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(r.Layout.Part(release.Digest.Hex()), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", release, err)
	}
	if err := room(file.Name(), release.Length); err != nil {
		return nil, errors.Join(fmt.Errorf("fetching %s: %w", release, err), file.Close())
	}
	verified, err := client.Download(ctx, blocks, file, progress)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &arrival{Verified: verified, file: file.Name()}, nil
}

func (r *run) arriveWhole(ctx context.Context, client *trust.Client, release artifact.Release, progress trust.Progress) (*arrival, error) {
	file, err := durable.TempFile(r.Layout.Incoming())
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", release, err)
	}
	if err := room(file.Name(), release.Length); err != nil {
		return nil, errors.Join(fmt.Errorf("fetching %s: %w", release, err), file.Close(), os.Remove(file.Name()))
	}
	verified, err := client.Fetch(ctx, release, file, progress)
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return &arrival{Verified: verified, file: file.Name()}, nil
}

// progress tells how much of what is fetched for a release has arrived.
func (r *run) progress(release artifact.Release, total int64) trust.Progress {
	var done atomic.Int64
	return func(n int) { r.record.Fetching(release.String(), done.Add(int64(n)), total) }
}

// end closes what arrived. Blocks stay for the next run where this one was only cut short; they go
// where nothing will come of them, or where their room is needed.
func (a *arrival) end(cause error) error {
	if a.ended {
		return nil
	}
	a.ended = true
	err := a.Close()
	if cause == nil || hopeless(cause, a.file) {
		err = errors.Join(err, os.Remove(a.file))
	}
	return err
}

// hopeless reports whether a failure is one after which a file that has half arrived is of no more use.
func hopeless(err error, file string) bool {
	var refused *trust.Refused
	var hostile *unpack.Hostile
	return errors.As(err, &refused) || errors.As(err, &hostile) || full(err) && crowded(file)
}

func (r *run) limits() unpack.Limits {
	c := r.Config
	return unpack.Limits{Bytes: c.UnpackBytes, Files: c.UnpackFiles, Depth: c.UnpackDepth, Ratio: c.UnpackRatio}
}

// place lets fill make a release's tree and gives it its name when it is complete: the bytes it
// was made of were verified, and so is the list of what it holds, where that was signed. What it was
// made of is discarded before the sync, which would write it out; a run that is killed in between
// leaves a staged release, which the next one adopts.
func (r *run) place(ctx context.Context, client *trust.Client, release artifact.Release, fill func(*os.Root) (*manifest.Manifest, error), discard func() error) (err error) {
	project := r.project(release.Project)
	list := r.Layout.Tree(release.Project, release.Dir())
	// A directory that is new is synced, which is to wait for less than all of the tree.
	if err := errors.Join(durable.MkdirAll(project.Releases(), 0o755), durable.MkdirAll(filepath.Dir(list), 0o700)); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	temp, err := durable.TempDir(project.Releases())
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	root, err := os.OpenRoot(temp)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	defer root.Close()
	tree, err := fill(root)
	if err != nil {
		return err
	}
	if err := r.keepTree(client, release, tree); err != nil {
		return err
	}
	staged := project.Staged(release.Dir())
	if err := errors.Join(os.Chmod(temp, 0o755), os.RemoveAll(staged)); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	if err := os.Rename(temp, staged); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	if err := discard(); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	return r.settle(ctx, release, staged)
}

// install gives a staged release its name. One that the disk failed to keep goes: the kernel tells of a
// failed write once, so the next sync would find nothing wrong with it.
func install(staged, name, list string) error {
	err := durable.Install(staged, name, list)
	if err != nil {
		err = errors.Join(err, os.RemoveAll(staged))
	}
	return err
}

// adopt gives a release that an earlier run unpacked to its end, and did not live to name, its name,
// if every file of it is as it was signed.
func (r *run) adopt(ctx context.Context, client *trust.Client, release artifact.Release) (bool, error) {
	project := r.project(release.Project)
	staged := project.Staged(release.Dir())
	root, err := os.OpenRoot(staged)
	if found, err := walk.Found(err); err != nil || !found {
		return false, err
	}
	defer root.Close()
	file := r.Layout.Tree(release.Project, release.Dir())
	data, listed, err := walk.Read(file)
	if err != nil {
		return false, err
	}
	if listed {
		want, signed := client.Tree(release)
		list, err := manifest.Decode(data)
		if err == nil && signed && want == manifest.Digest(data) {
			whole, err := list.Complete(ctx, root)
			if err != nil {
				return false, fmt.Errorf("verifying %s: %w", release, err)
			}
			if whole {
				return true, r.settle(ctx, release, staged)
			}
		}
	}
	return false, os.RemoveAll(staged)
}

// keepTree compares the list of a tree with what was signed, and keeps it for `corpus-agent verify`
// and for the next delta. It is durable when the release is installed.
func (r *run) keepTree(client *trust.Client, release artifact.Release, tree *manifest.Manifest) error {
	data := tree.Encode()
	if want, ok := client.Tree(release); ok && want != manifest.Digest(data) {
		return &trust.Refused{Check: trust.CheckDigest, Of: release.String(), Err: fmt.Errorf("the digest of its tree is %s, and %s was signed", manifest.Digest(data), want)}
	}
	return durable.WriteSoon(r.Layout.Tree(release.Project, release.Dir()), data, 0o600)
}

// tidy removes what is left of artifacts that are not to be fetched.
func (r *run) tidy(pair ledger.Pair, missing []artifact.Release) error {
	wanted := map[string]bool{}
	for _, release := range missing {
		wanted[release.Digest.Hex()] = true
		wanted[filepath.Base(r.project(release.Project).Staged(release.Dir()))] = true
	}
	patterns := []string{filepath.Join(r.Layout.Incoming(), "*")}
	for _, release := range pair.Releases() {
		patterns = append(patterns, r.project(release.Project).Staged("*"))
	}
	var errs []error
	for _, pattern := range patterns {
		names, err := walk.Glob(pattern)
		errs = append(errs, err)
		for _, name := range names {
			base := filepath.Base(name)
			digest, _, _ := strings.Cut(base, ".")
			if !wanted[base] && !wanted[digest] {
				errs = append(errs, os.RemoveAll(name))
			}
		}
	}
	return errors.Join(errs...)
}
