package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Collected is what was, or would be, removed.
type Collected struct {
	Packs   int   `json:"packs"` // removed
	Bytes   int64 `json:"bytes"`
	Young   int   `json:"young"`   // unreferenced, and left alone since a publisher may be about to sign them
	Pending int   `json:"pending"` // named by a draft that is not signed yet
	Kept    int   `json:"kept"`    // referenced
}

// Grace is how long what no index names is left alone.
type Grace struct {
	Packs  time.Duration // since its upload: longer than any publish takes
	Drafts time.Duration // since a draft was written that names it: longer than signing takes
}

// Collect removes packs of chunks that no signed index of their project names, and no draft that is
// still to be signed, and that are older than the grace. A publisher who is at work meanwhile loses
// nothing: what he uploaded is young, and what he uses again of earlier versions he checks in the very
// change that signs it. Packs of withdrawn versions stay, since a withdrawal can be taken back. Where
// anything cannot be read nothing of the project is removed. With dry nothing is removed at all.
func (p *Publisher) Collect(ctx context.Context, grace Grace, dry bool) (Collected, error) {
	var all Collected
	n, err := p.read(ctx)
	if err != nil {
		return all, err
	}
	for _, project := range n.client.Projects() {
		if err := p.collect(ctx, project, grace, dry, &all); err != nil {
			return all, fmt.Errorf("collecting chunks of %s: %w", project, err)
		}
	}
	return all, nil
}

// collect lists before it reads what is signed: what is signed between the two is found signed. The
// other way round, a draft might be imported, and its note removed by somebody else's collection,
// between reading and listing.
func (p *Publisher) collect(ctx context.Context, project string, grace Grace, dry bool, all *Collected) error {
	packs, notes, err := p.lying(ctx, project)
	if err != nil {
		return err
	}
	n, err := p.read(ctx)
	if err != nil {
		return err
	}
	used, err := referenced(ctx, n, project)
	if err != nil {
		return err
	}
	pending, err := p.pending(ctx, project, notes, used, grace.Drafts, dry)
	if err != nil {
		return err
	}
	for _, info := range packs {
		switch {
		case used[info.Key]:
			all.Kept++
		case pending[info.Key]:
			all.Pending++
		case info.Modified.IsZero() || p.now().Sub(info.Modified) < grace.Packs:
			all.Young++
		default:
			all.Packs++
			all.Bytes += info.Size
			if dry {
				continue
			}
			if err := p.Store.Delete(ctx, info.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// lying are a project's packs and the notes of drafts that are in the store.
func (p *Publisher) lying(ctx context.Context, project string) (packs, notes []store.Info, err error) {
	for info, err := range p.Store.List(ctx, chunk.PackPrefix(project)) {
		switch {
		case err != nil:
			return nil, nil, err
		case strings.HasSuffix(info.Key, ".pack"):
			packs = append(packs, info)
		case strings.HasSuffix(info.Key, noteSuffix):
			notes = append(notes, info)
		}
	}
	return packs, notes, nil
}

// referenced are the keys of packs that a project's signed indexes name.
func referenced(ctx context.Context, n *next, project string) (map[string]bool, error) {
	used := map[string]bool{}
	role, err := n.client.Whole(ctx, project)
	if errors.Is(err, trust.ErrNoProject) {
		return used, nil
	}
	if err != nil {
		return nil, err
	}
	for _, r := range trust.Releases(project, role) {
		index, err := fetchIndex(ctx, n.client, r)
		if errors.Is(err, trust.ErrNoSidecar) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, pack := range index.Packs {
			used[chunk.PackKey(project, pack)] = true
		}
	}
	return used, nil
}
