package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
)

// arrival is a fetched artifact: a file that is kept between runs if its blocks can be verified one by one, or else a
// temporary one.
type arrival struct {
	*trust.Verified
	file  string
	ended bool
}

// arrive fetches an artifact by its blocks, or as a whole if it was published without a list of them.
func (f *Fetcher) arrive(ctx context.Context, release artifact.Release) (*arrival, error) {
	progress := f.progress(release, release.Length)
	signed, err := f.Client.FetchSidecar(ctx, release, trust.KindBlocks)
	if errors.Is(err, trust.ErrNoSidecar) {
		return f.arriveWhole(ctx, release, progress)
	}
	if err != nil {
		return nil, err
	}
	blocks, err := trust.ParseBlocks(signed)
	if err != nil {
		return nil, err
	}
	return f.arriveInBlocks(ctx, release, blocks, progress)
}

// arriveInBlocks fetches an artifact by blocks, each of which is verified as it arrives.
func (f *Fetcher) arriveInBlocks(ctx context.Context, release artifact.Release, blocks *trust.Blocks,
	progress trust.Progress) (*arrival, error) {
	file, err := os.OpenFile(f.Layout.Part(release.Project, release.Digest.Hex()),
		os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", release, err)
	}
	if err := hasSpace(file.Name(), release.Length); err != nil {
		return nil, errors.Join(fmt.Errorf("fetching %s: %w", release, err), file.Close())
	}
	verified, err := f.Client.Download(ctx, blocks, file, progress)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &arrival{Verified: verified, file: file.Name()}, nil
}

func (f *Fetcher) arriveWhole(ctx context.Context, release artifact.Release, progress trust.Progress) (*arrival,
	error) {
	file, err := durable.TempFile(f.Layout.Incoming())
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", release, err)
	}
	if err := hasSpace(file.Name(), release.Length); err != nil {
		return nil, errors.Join(fmt.Errorf("fetching %s: %w", release, err), file.Close(), os.Remove(file.Name()))
	}
	verified, err := f.Client.Fetch(ctx, release, file, progress)
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return &arrival{Verified: verified, file: file.Name()}, nil
}

// progress reports how much of a release has arrived.
func (f *Fetcher) progress(release artifact.Release, total int64) trust.Progress {
	var done atomic.Int64
	return func(n int) { f.Progress.Fetching(release.String(), done.Add(int64(n)), total) }
}

// end closes the file of the artifact. It keeps the file for the next run if this one was only interrupted, and removes
// it if it is no longer needed or usable, or if its space is needed.
func (a *arrival) end(cause error) error {
	if a.ended {
		return nil
	}
	a.ended = true
	err := a.Close()
	if cause == nil || isUnusable(cause, a.file) {
		err = errors.Join(err, os.Remove(a.file))
	}
	return err
}

// isUnusable reports whether an error makes a partial download unusable.
func isUnusable(err error, file string) bool {
	var refused *trust.Refused
	var hostile *unpack.Hostile
	return errors.As(err, &refused) || errors.As(err, &hostile) || Full(err) && exceedsFreeSpace(file)
}
