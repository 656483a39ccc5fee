// Package fetch downloads releases: it makes a complete directory below the project's releases from a release in a
// store. It does not resolve channels and runs no program.
//
//	adopt what an earlier run unpacked to its end, or
//	rebuild it from chunks of releases that the host has (delta), or
//	fetch the artifact by blocks, resuming where an earlier run was interrupted
//	  -> unpack into a temporary directory -> compare with the signed list -> rename
//
// A directory gets its name last, so a release that has its name is complete.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Progress shows the progress of a fetch.
type Progress interface {
	Note(format string, args ...any)
	Fetching(artifact string, done, total int64) // bytes
}

// Fetcher fetches releases for one run.
type Fetcher struct {
	Held
	Client   *trust.Client // of the store, refreshed
	Store    store.Store   // where chunks come from
	Limits   unpack.Limits
	Progress Progress
	Run      string // the run's ID, which is part of the names of directories that are set aside
	// Running has the directories of the deployed releases, by project. A delta searches them first.
	Running map[string]string
	// Intact reports whether the directory of a release matches its signed list, so that only the local list was lost.
	Intact func(ctx context.Context, release artifact.Release, dir string) (bool, error)
	// Replaced is called with each release that replaced a directory that was not intact, or a missing directory of a
	// deployed release. Calls may be concurrent.
	Replaced func(artifact.Release)
}

// Fetch fetches the releases that are missing on this host, concurrently.
func (f *Fetcher) Fetch(ctx context.Context, releases []artifact.Release) error {
	missing, err := f.missing(releases)
	if err != nil {
		return err
	}
	if err := f.tidy(ctx, releases, missing); err != nil {
		return err
	}
	defer process.CollectOften()()
	group, within := errgroup.WithContext(ctx)
	for _, release := range missing {
		group.Go(func() error { return f.addSigners(release, f.fetchRelease(within, release)) })
	}
	if err := group.Wait(); err != nil {
		return ExplainSpace(err)
	}
	if len(missing) > 0 {
		debug.FreeOSMemory() // the buffers of unpacking, before the rest of the run needs memory of its own
	}
	return f.tidy(ctx, releases, nil)
}

// missing returns the releases that this host does not hold.
func (f *Fetcher) missing(releases []artifact.Release) (missing []artifact.Release, err error) {
	for _, release := range releases {
		has, err := f.Holds(release)
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", release, err)
		}
		if !has {
			missing = append(missing, release)
		}
	}
	return missing, nil
}

// Again fetches a release whose directory on the disk was changed, or has lost its list. The old directory is set aside
// only when the new one is complete, so that a failure of the store leaves the host unchanged.
func (f *Fetcher) Again(ctx context.Context, release artifact.Release) error {
	return ExplainSpace(f.addSigners(release, f.fetchRelease(ctx, release)))
}

// addSigners adds the signer of the refused release to a refusal.
func (f *Fetcher) addSigners(release artifact.Release, err error) error {
	var hostile *unpack.Hostile
	if errors.As(err, &hostile) {
		return fmt.Errorf("%w; signed by %s", err, f.Client.Signers(release.Project))
	}
	return f.Client.AddSigners(release.Project, err)
}

func (f *Fetcher) fetchRelease(ctx context.Context, release artifact.Release) (err error) {
	if err := durable.MkdirAll(f.Layout.Incoming(), 0o700); err != nil {
		return fmt.Errorf("fetching %s: %w", release, err)
	}
	if done, err := f.adopt(ctx, release); done || err != nil {
		return err
	}
	if done, err := f.fetchDelta(ctx, release); done || err != nil {
		return err
	}
	in, err := f.arrive(ctx, release)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.end(err)) }()
	return f.place(ctx, release, func(dir *os.Root) (*manifest.Manifest, error) {
		unpacked, err := unpack.Into(ctx, in.Verified, dir, f.Limits)
		return unpacked.Tree, err
	}, func() error { return in.end(nil) })
}

// tidy removes partial downloads of artifacts that are no longer needed.
func (f *Fetcher) tidy(ctx context.Context, releases, missing []artifact.Release) error {
	wanted := map[string]bool{}
	for _, release := range missing {
		wanted[f.Layout.Part(release.Project, release.Digest.Hex())] = true
		wanted[f.Layout.Chunks(release.Project, release.Digest.Hex())] = true
		wanted[f.Layout.Project(release.Project).Staged(release.Dir())] = true
	}
	patterns := []string{filepath.Join(f.Layout.Incoming(), "*")}
	for _, release := range releases {
		patterns = append(patterns, f.Layout.Project(release.Project).Staged("*"))
	}
	var errs []error
	for _, pattern := range patterns {
		names, err := walk.Glob(pattern)
		errs = append(errs, err)
		for _, name := range names {
			if !wanted[name] {
				errs = append(errs, durable.RemoveAll(ctx, name))
			}
		}
	}
	return errors.Join(errs...)
}
