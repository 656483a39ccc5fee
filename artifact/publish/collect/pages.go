package collect

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// pages lists the pages of a project's versions that may be removed: those that are neither in the current head nor in
// a head that was replaced within the grace period. A host that read such a head may be about to read its pages.
func (c *collection) pages(ctx context.Context, project string) ([]store.Info, error) {
	recent, err := c.recentPages(ctx, project)
	if err != nil {
		return nil, err
	}
	var list []store.Info
	for info, err := range c.Store.List(ctx, trust.PagePrefix(project)) {
		switch {
		case err != nil:
			return nil, err
		case recent[info.Key]:
			c.all.Pages.Young++
		default:
			list = append(list, info)
		}
	}
	return list, nil
}

// recentPages returns the keys of the pages of heads that were replaced within the grace period. A head is replaced
// when the next one is written.
func (c *collection) recentPages(ctx context.Context, project string) (map[string]bool, error) {
	heads, err := c.heads(ctx, project)
	if err != nil {
		return nil, err
	}
	recent := map[string]bool{}
	for i, head := range heads {
		if i+1 == len(heads) || !c.young(heads[i+1].Modified) {
			continue
		}
		data, err := trust.ReadMetadata(ctx, c.Store, head.Key)
		if err != nil {
			return nil, err
		}
		for _, key := range pageKeys(project, data) {
			recent[key] = true
		}
	}
	return recent, nil
}

// heads lists a project's heads in the store by version.
func (c *collection) heads(ctx context.Context, project string) ([]store.Info, error) {
	byVersion, versions := map[int64]store.Info{}, []int64{}
	for info, err := range c.Store.List(ctx, "metadata/") {
		if err != nil {
			return nil, err
		}
		number, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, "metadata/"),
			"."+trust.MetaName(trust.HeadRole(project)))
		if version, err := strconv.ParseInt(number, 10, 64); ok && err == nil {
			byVersion[version], versions = info, append(versions, version)
		}
	}
	slices.Sort(versions)
	heads := make([]store.Info, len(versions))
	for i, version := range versions {
		heads[i] = byVersion[version]
	}
	return heads, nil
}

// pageKeys returns the keys of the pages that an unverified head names; none if the head is damaged.
func pageKeys(project string, head []byte) []string {
	role, err := trust.Decode[tuf.TargetsType](head)
	if err != nil {
		return nil
	}
	digests, err := trust.Pages(role)
	if err != nil {
		return nil
	}
	keys := make([]string, len(digests))
	for i, digest := range digests {
		keys[i] = trust.PageKey(project, digest)
	}
	return keys
}
