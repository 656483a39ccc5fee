package agent

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ShowGrains collects the host's grains as the next run would see them. On a host of which nobody
// knows who it is, those of its identity are missing.
func (a *Agent) ShowGrains(ctx context.Context) (*value.Map, error) {
	book, err := a.ReadLedger()
	if err != nil {
		return nil, err
	}
	id, _, err := a.Who(ctx, grains.Identity{}, book)
	if err != nil {
		id = grains.Identity{}
	}
	base := ""
	if runs := book.Runs(); runs != nil && runs.Base != nil {
		_, dir := a.PairDirs(*runs)
		base = a.Layout.Path(dir)
	}
	all, _, err := a.Grains(ctx, id, base)
	return all, err
}

// ShowPillar compiles the host's pillar from what is deployed. Values that were decrypted stay
// hidden.
func (a *Agent) ShowPillar(ctx context.Context) (*value.Map, error) {
	book, err := a.ReadLedger()
	if err != nil {
		return nil, err
	}
	runs := book.Runs()
	if runs == nil {
		return nil, errNothingDeployed()
	}
	id, _, err := a.Who(ctx, grains.Identity{}, book)
	if err != nil {
		return nil, err
	}
	service, base := a.LinkedDirs(*runs)
	request, _, err := a.EngineRequest(ctx, id, service, base)
	if err != nil {
		return nil, err
	}
	s := state.SessionFor(request)
	data, err := s.Pillar(ctx)
	if err != nil {
		return nil, err
	}
	return s.Redactor.Value(data).(*value.Map), nil
}

func errNothingDeployed() error {
	return exit.WithCode(exit.Usage, diag.WithHint(errors.New("nothing is deployed on this host"), "deploy first: corpus-agent deploy"))
}
