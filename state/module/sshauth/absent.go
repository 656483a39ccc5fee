package sshauth

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/owned"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent implements ssh_auth.absent.
type absent struct{ arguments }

func (a *absent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	keys, err := a.keys(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	if err := a.find(h); errors.Is(err, owned.ErrNoUser) {
		return module.Diff{Comment: fmt.Sprintf("there is no user %s to have keys", a.User)}, nil
	} else if err != nil {
		return module.Diff{}, err
	}
	gone := map[string]bool{}
	for _, k := range keys {
		if _, there := a.target.file.at[k.Text]; there {
			gone[k.Text] = true
		}
	}
	if len(gone) == 0 {
		return module.Diff{Comment: fmt.Sprintf("user %s does not have %s", a.User, labels(keys))}, nil
	}
	a.text = a.target.file.with(nil, gone)
	name := keys[0].Text
	if a.Source != "" {
		name = a.Name
	}
	return module.Diff{
		Changes: value.NewMap(name, "Removed"), Planned: value.NewMap(),
		Comment: fmt.Sprintf("%s of user %s would be removed", labels(keys), a.User),
	}, nil
}

func (a *absent) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	warnings, err := a.write(h)
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("keys were removed from %s", a.target.path),
		Warnings: warnings}, nil
}
