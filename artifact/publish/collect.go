package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Collected is what was, or would be, removed.
type Collected struct {
	Packs int   `json:"packs"` // removed
	Bytes int64 `json:"bytes"`
	Young int   `json:"young"` // unreferenced, and left alone since a publisher may be about to sign them
	Kept  int   `json:"kept"`  // referenced
}

// Collect removes packs of chunks that no signed index of their project names and that are older than
// grace. A publisher who is at work meanwhile loses nothing: what he uploaded is young, and what he
// uses again of earlier versions he checks in the very change that signs it. Where anything cannot
// be read nothing of the project is removed. With dry nothing is removed at all.
func (p *Publisher) Collect(ctx context.Context, grace time.Duration, dry bool) (Collected, error) {
	var all Collected
	n, err := p.read(ctx)
	if err != nil {
		return all, err
	}
	for _, project := range n.client.Projects() {
		if err := p.collect(ctx, n, project, grace, dry, &all); err != nil {
			return all, fmt.Errorf("collecting chunks of %s: %w", project, err)
		}
	}
	return all, nil
}

func (p *Publisher) collect(ctx context.Context, n *next, project string, grace time.Duration, dry bool, all *Collected) error {
	used, err := referenced(ctx, n, project)
	if err != nil {
		return err
	}
	for info, err := range p.Store.List(ctx, chunk.PackPrefix(project)) {
		switch {
		case err != nil:
			return err
		case used[info.Key]:
			all.Kept++
			continue
		case !strings.HasSuffix(info.Key, ".pack"):
			continue
		case info.Modified.IsZero() || p.now().Sub(info.Modified) < grace:
			all.Young++
			continue
		}
		if !dry {
			if err := p.Store.Delete(ctx, info.Key); err != nil {
				return err
			}
		}
		all.Packs++
		all.Bytes += info.Size
	}
	return nil
}

// referenced are the keys of packs that a project's signed indexes name.
func referenced(ctx context.Context, n *next, project string) (map[string]bool, error) {
	used := map[string]bool{}
	role, err := n.client.Project(ctx, project)
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
