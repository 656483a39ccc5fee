package agent

import (
	"context"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ShowGrains collects the host's grains as the next run would see them. On a host of which nobody
// knows who it is, those of its identity are missing.
func (a *Agent) ShowGrains(ctx context.Context) (*value.Map, error) {
	book, err := ledger.Load(a.Layout.Ledger())
	if err != nil {
		return nil, err
	}
	id, err := a.Identify(ctx, grains.Identity{}, book.Host)
	if err != nil {
		id = grains.Identity{}
	}
	base := ""
	if book.Good != nil && book.Good.Base != nil {
		_, dir := a.pairDirs(*book.Good)
		base = a.Layout.Path(dir)
	}
	all, _, err := a.Grains(ctx, id, base)
	return all, err
}
