package pkg

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// group implements pkg.group_installed, which always fails: apt, zypper and apk have no package groups, and
// those of dnf, yum and pacman are not supported.
type group struct {
	Name    string   `sls:"name"`
	Skip    []string `sls:"skip"`
	Include []string `sls:"include"`
}

func (g *group) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{}, diag.Argument.Hint(fmt.Errorf("groups of packages, such as %s, are not installed as such",
		g.Name), "name the packages in pkg.installed; a metapackage, such as build-essential, is a package like any other")
}

func (g *group) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil // not reached, as Check always fails
}
