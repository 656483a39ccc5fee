package pkg

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// group is pkg.group_installed, which is refused: groups of packages are known to dnf, yum and pacman,
// and not to apt.
type group struct {
	Name    string   `sls:"name"`
	Skip    []string `sls:"skip"`
	Include []string `sls:"include"`
}

func (g *group) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{}, diag.WithHint(fmt.Errorf("the package manager of this host has no groups of packages, such as %s", g.Name),
		"name the packages in pkg.installed; a metapackage, such as build-essential, is a package like any other")
}

func (g *group) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil // Check always fails
}
