package group

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent implements group.absent.
type absent struct {
	Name string `sls:"name"`

	// Planned lists what earlier steps of a dry run would do to accounts.
	Planned *value.List `sls:"__planned__"`
}

func (a *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Accounts.Allowed("group " + a.Name); err != nil {
		return module.Diff{}, err
	}
	_, ok, err := module.ExpectedAccounts(a.Planned).Group(h.Accounts, a.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if !ok {
		return module.Diff{Comment: fmt.Sprintf("there is no group %s", a.Name)}, nil
	}
	return module.Diff{Changes: a.changes(), Planned: value.NewMap(),
		Comment: fmt.Sprintf("group %s would be removed", a.Name)}, nil
}

func (a *absent) changes() *value.Map { return value.NewMap(a.Name, "") }

func (a *absent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if err := h.Accounts.RemoveGroup(ctx, a.Name); err != nil {
		return module.Report{}, fmt.Errorf("removing group %s: %w", a.Name, err)
	}
	return module.Report{Changes: a.changes(), Comment: fmt.Sprintf("group %s was removed", a.Name)}, nil
}
