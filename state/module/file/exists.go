package file

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// presence implements file.exists and file.missing: it checks that a path exists, or does not.
type presence struct {
	Name string `sls:"name"`

	wanted bool
}

func (p *presence) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	name, err := absolute(h, "name", p.Name)
	if err != nil {
		return module.Diff{}, err
	}
	_, there, err := look(h.Following().Files.Stat, name) // following links is safe, as only the existence is reported
	if err != nil {
		return module.Diff{}, err
	}
	switch {
	case there == p.wanted:
		return module.Diff{Comment: name + map[bool]string{true: " is there", false: " does not exist"}[there]}, nil
	case there:
		return module.Diff{}, host.WithObstacle(name, diag.Path.Hint(fmt.Errorf("%s is there", name),
			"file.absent removes it"))
	}
	return module.Diff{}, lackingFile(fmt.Errorf("%s does not exist", name), name)
}

func (p *presence) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil
}
