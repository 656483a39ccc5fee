package pecl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// installed implements pecl.installed.
type installed struct {
	pecl
	Version        string `sls:"version"`
	Defaults       bool   `sls:"defaults"` // answer the questions of pecl with the defaults
	Force          bool   `sls:"force"`
	PreferredState string `sls:"preferred_state"`
}

func (p *installed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, err := client.Awaits(h, p.program()); err != nil || what != "" {
		return module.Awaits(what, "install "+p.Name), err
	}
	have, err := p.version(ctx, h)
	if err != nil || have != "" && (p.Version == "" || p.Version == have) {
		return module.Diff{Comment: p.Name + " is installed"}, err
	}
	return module.Diff{Changes: value.NewMap(p.Name, "Installed"),
		Comment: strings.TrimSpace("would install " + p.Name + " " + p.Version)}, nil
}

func (p *installed) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	program, name := p.program(), p.Name
	if what, err := client.Awaits(h, program); err != nil || what != "" {
		return module.Report{}, client.OrMissing(err, program, what)
	}
	if p.Version != "" {
		name += "-" + p.Version
	}
	args := []string{"-d", "preferred_state=" + p.PreferredState, "install"}
	if p.Force {
		args = append(args, "--force")
	}
	if p.Defaults {
		program.Stdin = strings.Repeat("\n", 100)
	}
	if _, err := program.Do(ctx, h, append(args, name)...); err != nil {
		return module.Report{}, diag.Library.Hint(err, "building an extension takes php-dev and a compiler")
	}
	// pecl may exit with 0 without having installed anything.
	if have, err := p.version(ctx, h); err != nil || have == "" {
		return module.Report{}, errors.Join(err, fmt.Errorf("pecl does not list %s after its installation", p.Name))
	}
	return module.Report{Changes: value.NewMap(p.Name, "Installed"), Comment: "installed " + p.Name}, nil
}
