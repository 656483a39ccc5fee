package sshknownhosts

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/owned"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent implements ssh_known_hosts.absent.
type absent struct {
	place
	Name string `sls:"name"`
}

func (a *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := a.find(h); errors.Is(err, owned.ErrNoUser) {
		return module.Diff{Comment: fmt.Sprintf("there is no user %s to know hosts", a.User)}, nil
	} else if err != nil {
		return module.Diff{}, err
	}
	entries := a.file.find(a.Name, false)
	if len(entries) == 0 {
		return module.Diff{Comment: fmt.Sprintf("host %s is not known in %s", a.Name, a.path)}, nil
	}
	fingerprint, err := fingerprints("")
	return module.Diff{
		Changes: value.NewMap("old", report(entries, fingerprint), "new", nil), Planned: value.NewMap(),
		Comment: fmt.Sprintf("host %s would be removed from %s", a.Name, a.path),
	}, err
}

func (a *absent) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	warnings, err := a.write(h, a.file.text(a.Name, func(entry) bool { return true }, nil))
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("host %s was removed from %s", a.Name, a.path),
		Warnings: warnings}, nil
}
