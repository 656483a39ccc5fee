package inspect

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
func (h *Host) ShowGrains(ctx context.Context) (*value.Map, error) {
	book, err := h.ReadLedger()
	if err != nil {
		return nil, err
	}
	id, _, err := h.Who(ctx, grains.Identity{}, book)
	if err != nil {
		id = grains.Identity{}
	}
	base := ""
	if runs := book.Runs(); runs != nil && runs.Base != nil {
		_, dir := h.PairDirs(*runs)
		base = h.Layout.Path(dir)
	}
	all, _, err := h.Grains(ctx, id, base)
	return all, err
}

// ShowPillar compiles the host's pillar from what is deployed. Values that were decrypted stay
// hidden.
func (h *Host) ShowPillar(ctx context.Context) (*value.Map, error) {
	book, err := h.ReadLedger()
	if err != nil {
		return nil, err
	}
	runs := book.Runs()
	if runs == nil {
		return nil, ErrNothingDeployed()
	}
	id, _, err := h.Who(ctx, grains.Identity{}, book)
	if err != nil {
		return nil, err
	}
	service, base := h.LinkedDirs(*runs)
	request, _, err := h.EngineRequest(ctx, id, service, base)
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

// ErrNothingDeployed is the error of a question about what is deployed on a host on which nothing is.
func ErrNothingDeployed() error {
	return exit.WithCode(exit.Usage, diag.WithHint(errors.New("nothing is deployed on this host"),
		"deploy first: corpus-agent deploy"))
}
