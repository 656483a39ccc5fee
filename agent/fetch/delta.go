package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const (
	// lookInto bounds how many releases on this host are searched for chunks, newest first. Each of them is read
	// once.
	lookInto = 3
	// goodEnough limits the search: no further release is read once less than 1/goodEnough of the release is missing.
	goodEnough = 20
)

// fetchDelta builds a release from releases on this host and the chunks that they lack. It returns false if fetching
// the whole artifact is better: there is no release to build on, a part of the artifact has arrived, or the chunks cost
// more.
func (f *Fetcher) fetchDelta(ctx context.Context, release artifact.Release) (done bool, err error) {
	if _, _, ok := f.Client.Sidecar(release, trust.KindIndex); !ok || f.halfArrived(release) {
		return false, nil
	}
	old, err := f.oldTrees(f.Layout.Project(release.Project), release.Dir())
	defer func() { err = errors.Join(err, old.close()) }()
	if err != nil || len(old) == 0 {
		return false, err
	}
	plan, err := f.planDelta(ctx, release, old)
	if wholeSuffices(err) && ctx.Err() == nil {
		f.Progress.Note("%s is fetched as a whole: %v", release, f.Client.AddSigners(release.Project, err))
		return false, nil
	}
	if err != nil || plan.Cost() >= chunk.FullCost(release.Length) {
		return false, err
	}
	err = f.rebuild(ctx, release, plan)
	if wholeSuffices(err) && ctx.Err() == nil {
		f.Progress.Note("%s is fetched as a whole: %v", release, f.Client.AddSigners(release.Project, err))
		return false, nil
	}
	return err == nil, err
}

// wholeSuffices reports whether err means that chunks, or the index of them, are missing or invalid, so that the whole
// artifact has to be fetched.
func wholeSuffices(err error) bool {
	var refused *trust.Refused
	return errors.As(err, &refused) || errors.Is(err, chunk.ErrChanged) || errors.Is(err, store.ErrNotFound) ||
		errors.Is(err, store.ErrForbidden)
}

// halfArrived reports whether there is an interrupted download of the whole artifact that can be resumed.
func (f *Fetcher) halfArrived(release artifact.Release) bool {
	_, err := os.Stat(f.Layout.Part(release.Project, release.Digest.Hex()))
	return err == nil
}

func (f *Fetcher) planDelta(ctx context.Context, release artifact.Release, old trees) (*chunk.Plan, error) {
	signed, err := f.Client.FetchSidecar(ctx, release, trust.KindIndex)
	if err != nil {
		return nil, err
	}
	index, err := chunk.Parse(signed)
	if err != nil {
		return nil, err
	}
	plan := chunk.NewPlan(index)
	for _, tree := range old {
		plan.Look(ctx, tree.stream)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if plan.Bytes() < release.Length/goodEnough {
			break
		}
	}
	return plan, nil
}

// rebuild fetches the missing chunks and builds the release.
func (f *Fetcher) rebuild(ctx context.Context, release artifact.Release, plan *chunk.Plan) (err error) {
	f.Progress.Note("%s: %s of %s are new, fetched in %s", release, diag.Size(plan.Bytes()),
		diag.Size(release.Length), diag.Count(plan.Requests(), "request"))
	file := f.Layout.Chunks(release.Project, release.Digest.Hex())
	cache, err := plan.OpenCache(file)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", release, err)
	}
	kept := true
	defer func() {
		if !kept {
			return
		}
		if err == nil || isUnusable(err, file) || errors.Is(err, chunk.ErrChanged) {
			err = errors.Join(err, cache.Remove())
		} else {
			err = errors.Join(err, cache.Close())
		}
	}()
	if err := hasSpace(file, plan.Bytes()); err != nil {
		return fmt.Errorf("fetching %s: %w", release, err)
	}
	if err := plan.Fetch(ctx, f.Store, cache, f.progress(release, plan.Bytes())); err != nil {
		return err
	}
	tree, err := plan.Assemble(cache)
	if err != nil {
		return err
	}
	return f.place(ctx, release, func(dir *os.Root) (*manifest.Manifest, error) {
		rebuilt, err := unpack.Rebuild(ctx, tree, dir, f.Limits)
		return rebuilt.Tree, err
	}, func() error {
		kept = false
		return cache.Remove()
	})
}

// oldTree is a release on this host that chunks may come from.
type oldTree struct {
	root   *os.Root
	stream *chunk.Stream
}

type trees []oldTree

func (t trees) close() error {
	var errs []error
	for _, tree := range t {
		errs = append(errs, tree.stream.Close(), tree.root.Close())
	}
	return errors.Join(errs...)
}

// oldTrees opens the newest releases of a project that have lists, except but, which is fetched again.
func (f *Fetcher) oldTrees(p layout.Project, but string) (trees, error) {
	dirs, err := NewestFirst(p.Releases())
	if err != nil {
		return nil, err
	}
	current := f.Running[p.Name]
	structsort.Func(dirs, func(a, b string) int {
		switch {
		case a == current && b != current:
			return -1
		case b == current && a != current:
			return 1
		}
		return 0
	})
	var found trees
	for _, dir := range dirs {
		if dir == but {
			continue
		}
		list, _, err := ReadTree(f.Layout.Tree(p.Name, dir))
		if err != nil {
			return found, err
		}
		if list == nil {
			continue // an agent without lists unpacked it, or the list is damaged
		}
		root, err := walk.OpenTree(p.Release(dir))
		if err != nil {
			return found, err
		}
		if found = append(found, oldTree{root: root, stream: chunk.NewStream(root, list)}); len(found) == lookInto {
			break
		}
	}
	return found, nil
}
