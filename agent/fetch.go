package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// fetch makes both releases of a pair directories on this host. One that is there is complete,
// since it got its name last.
func (r *run) fetch(ctx context.Context, client *trust.Client, pair ledger.Pair) error {
	if err := r.tidyIncoming(pair); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, release := range pair.Releases() {
		if r.has(release) {
			continue
		}
		group.Go(func() error { return r.fetchRelease(ctx, client, release) })
	}
	return explainSpace(group.Wait())
}

// has reports whether a release is unpacked on this host.
func (r *run) has(release artifact.Release) bool {
	info, err := os.Stat(r.project(release.Project).Release(release.Dir()))
	return err == nil && info.IsDir()
}

func explainSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return diag.WithHint(err, "make room, or lower keep.releases in agent.yaml; nothing on the host was changed")
	}
	return err
}

func (r *run) fetchRelease(ctx context.Context, client *trust.Client, release artifact.Release) (err error) {
	if err := durable.MkdirAll(r.Layout.Incoming(), 0o700); err != nil {
		return fmt.Errorf("fetching %s: %w", release, err)
	}
	if done, err := r.fetchDelta(ctx, client, release); done || err != nil {
		return err
	}
	in, err := r.arrive(ctx, client, release)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.end(err)) }()
	return r.place(client, release, func(dir *os.Root) (*manifest.Manifest, error) {
		unpacked, err := unpack.Into(ctx, in.Verified, dir, r.limits())
		if err == nil {
			err = in.end(nil) // before the sync, which would write it out
		}
		return unpacked.Tree, err
	})
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
	if cause == nil || hopeless(cause) {
		err = errors.Join(err, os.Remove(a.file))
	}
	return err
}

func hopeless(err error) bool {
	var refused *trust.Refused
	var hostile *unpack.Hostile
	return errors.As(err, &refused) || errors.As(err, &hostile) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (r *run) limits() unpack.Limits {
	c := r.Config
	return unpack.Limits{Bytes: c.UnpackBytes, Files: c.UnpackFiles, Depth: c.UnpackDepth, Ratio: c.UnpackRatio}
}

// place lets fill make a release's tree and gives it its name when it is complete: the bytes it
// was made of were verified, and so is the list of what it holds, where that was signed.
func (r *run) place(client *trust.Client, release artifact.Release, fill func(*os.Root) (*manifest.Manifest, error)) (err error) {
	project := r.project(release.Project)
	if err := durable.MkdirAll(project.Releases(), 0o755); err != nil {
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
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	return durable.Install(temp, project.Release(release.Dir()))
}

// keepTree compares the list of a tree with what was signed, and keeps it for `corpus-agent verify`
// and for the next delta.
func (r *run) keepTree(client *trust.Client, release artifact.Release, tree *manifest.Manifest) error {
	data := tree.Encode()
	if want, ok := client.Tree(release); ok && want != manifest.Digest(data) {
		return &trust.Refused{Check: trust.CheckDigest, Of: release.String(), Err: fmt.Errorf("the digest of its tree is %s, and %s was signed", manifest.Digest(data), want)}
	}
	file := r.Layout.Tree(release.Project, release.Dir())
	if err := durable.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("keeping the list of %s: %w", release, err)
	}
	return durable.WriteFile(file, data, 0o600)
}

// tidyIncoming removes what is left of artifacts that nobody wants any more.
func (r *run) tidyIncoming(pair ledger.Pair) error {
	entries, err := os.ReadDir(r.Layout.Incoming())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		digest, _, _ := strings.Cut(e.Name(), ".")
		wanted := slices.ContainsFunc(pair.Releases(), func(r artifact.Release) bool { return r.Digest.Hex() == digest })
		if !wanted {
			errs = append(errs, os.RemoveAll(filepath.Join(r.Layout.Incoming(), e.Name())))
		}
	}
	return errors.Join(errs...)
}
