package inspect

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ShowGrains returns the host's grains as the next run would see them. On a host whose identity is not known, the
// grains of the identity are missing. The warnings name each file and program that gave no grains, and why.
func (h *Host) ShowGrains(ctx context.Context) (all *value.Map, warnings []error, err error) {
	book, err := h.ReadLedger()
	if err != nil {
		return nil, nil, err
	}
	id, _, err := h.Who(ctx, grains.Identity{}, book)
	if err != nil {
		id = grains.Identity{}
	}
	dirs := site.GrainDirs{}
	if runs := book.Runs(); runs != nil {
		service, base := h.PairDirs(*runs)
		if runs.Base != nil {
			dirs.Base = h.Layout.Path(base)
		}
		for _, root := range layout.StateRoots(service, base) {
			dirs.States = append(dirs.States, h.Layout.Path(root))
		}
	}
	return h.Grains(ctx, id, dirs)
}

// ShowPillar compiles the host's pillar from what is deployed. Values that were decrypted stay hidden. The warnings are
// those of ShowGrains, since a pillar depends on grains.
func (h *Host) ShowPillar(ctx context.Context) (pillar *value.Map, warnings []error, err error) {
	book, err := h.ReadLedger()
	if err != nil {
		return nil, nil, err
	}
	runs := book.Runs()
	if runs == nil {
		return nil, nil, ErrNothingDeployed()
	}
	id, _, err := h.Who(ctx, grains.Identity{}, book)
	if err != nil {
		return nil, nil, err
	}
	service, base := h.LinkedDirs(*runs)
	request, warnings, err := h.EngineRequest(ctx, id, service, base)
	if err != nil {
		return nil, warnings, err
	}
	s := state.SessionFor(request)
	defer s.Close()
	data, err := s.Pillar(ctx)
	if err != nil {
		return nil, warnings, err
	}
	return s.Redactor.Value(data).(*value.Map), warnings, nil
}

// ErrNothingDeployed returns the error of a command that needs a deployed release, on a host without one.
func ErrNothingDeployed() error {
	return exit.WithCode(exit.Usage, diag.Undeployed.Hint(errors.New("nothing is deployed on this host"),
		"deploy first: corpus-agent deploy"))
}
