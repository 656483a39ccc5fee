package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/fleet/pages"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// largestCompared is the maximum size, in bytes, of an artifact that is read to compare its files.
const largestCompared = 8 << 20

// comparing compares releases by their signed contents.
type comparing struct {
	client   *trust.Client
	listings []trust.Listing
}

// releases compares two releases of a project: their packages if both have package lists, and their files if the
// artifacts are small.
func (c comparing) releases(ctx context.Context, project, older, newer string) (out pages.Comparison, err error) {
	out.Old, out.New = c.find(project, older), c.find(project, newer)
	if out.Old.Version == "" || out.New.Version == "" {
		return out, nil
	}
	before, err := c.packages(ctx, out.Old)
	if err != nil {
		return out, err
	}
	after, err := c.packages(ctx, out.New)
	if err != nil {
		return out, err
	}
	out.Listed = before != nil && after != nil
	if out.Listed {
		out.Packages = changedPackages(before, after)
	}
	if out.Old.Length > largestCompared || out.New.Length > largestCompared {
		return out, nil
	}
	old, err := c.tree(ctx, out.Old)
	if err != nil || old == nil {
		return out, err
	}
	tree, err := c.tree(ctx, out.New)
	if err != nil || tree == nil {
		return out, err
	}
	out.Files = true
	changedFiles(&out, old, tree)
	return out, nil
}

func (c comparing) find(project, version string) artifact.Release {
	for _, l := range c.listings {
		for _, r := range l.Releases {
			if l.Project == project && r.Version == version {
				return r
			}
		}
	}
	return artifact.Release{}
}

// packages returns the versions of the packages of a release by name. It returns nil if the release has no package
// list.
func (c comparing) packages(ctx context.Context, r artifact.Release) (map[string]string, error) {
	signed, err := c.client.FetchSidecar(ctx, r, trust.KindSPDX)
	var refused *trust.Refused
	if errors.Is(err, trust.ErrNoSidecar) || errors.As(err, &refused) {
		return nil, nil //nolint:nilnil // corpus verify lists damaged objects
	}
	if err != nil {
		return nil, err
	}
	var document struct {
		Packages []struct {
			Name    string `json:"name"`
			Version string `json:"versionInfo"`
		} `json:"packages"`
	}
	if json.Unmarshal(signed.Data(), &document) != nil {
		return nil, nil //nolint:nilnil // another program's list
	}
	all := map[string]string{}
	for _, p := range document.Packages {
		if p.Name != r.Project {
			all[p.Name] = p.Version
		}
	}
	return all, nil
}

func changedPackages(before, after map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch old, had := before[name]; {
		case !had:
			all = append(all, "added "+name+" "+after[name])
		case old != after[name]:
			all = append(all, name+" "+old+" -> "+after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, has := after[name]; !has {
			all = append(all, "removed "+name+" "+before[name])
		}
	}
	return all
}

// tree returns the manifest of a release. It returns nil if the artifact is lost or damaged in the store, or too large.
func (c comparing) tree(ctx context.Context, r artifact.Release) (*manifest.Manifest, error) {
	dir, done, err := durable.Scratch()
	if err != nil {
		return nil, err
	}
	defer done()
	tree, err := c.unpacked(ctx, r, dir, unpack.Limits{Bytes: 1 << 30, Files: 100_000})
	var hostile *unpack.Hostile
	if errors.As(err, &hostile) {
		return nil, nil //nolint:nilnil // it is too large for a page
	}
	return tree, lost(err)
}

// unpacked fetches and verifies a release, and unpacks it into the directory tree below dir.
func (c comparing) unpacked(ctx context.Context, r artifact.Release, dir string,
	limits unpack.Limits) (*manifest.Manifest,
	error) {
	file, err := os.OpenFile(filepath.Join(dir, "artifact"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	verified, err := c.client.Fetch(ctx, r, file, nil)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "tree"), 0o700); err != nil {
		return nil, err
	}
	into, err := walk.OpenTree(filepath.Join(dir, "tree"))
	if err != nil {
		return nil, err
	}
	defer into.Close()
	unpacked, err := unpack.Into(ctx, verified, into, limits)
	return unpacked.Tree, err
}

// lost returns nil for the error of an artifact that is lost or damaged, since corpus verify lists these, and returns
// any other error unchanged.
func lost(err error) error {
	var sum verified
	return sum.take(err)
}

func changedFiles(c *pages.Comparison, before, after *manifest.Manifest) {
	known := map[string]manifest.Entry{}
	for _, e := range before.Entries {
		known[e.Name] = e
	}
	for _, e := range after.Entries {
		old, had := known[e.Name]
		delete(known, e.Name)
		switch {
		case e.Kind == manifest.Directory:
		case !had:
			c.Added = append(c.Added, e.Name)
		case old.Kind != e.Kind || old.Digest != e.Digest || old.Link != e.Link:
			c.Changed = append(c.Changed, e.Name)
		}
	}
	for name, e := range known {
		if e.Kind != manifest.Directory {
			c.Removed = append(c.Removed, name)
		}
	}
	slices.Sort(c.Removed)
}
