package npm

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// bootstrap implements npm.bootstrap: it installs the dependencies in a directory's package.json.
type bootstrap struct {
	Name   string `sls:"name"`
	User   string `sls:"user"`
	Silent bool   `sls:"silent"`
}

func (n *bootstrap) program() program.Program { return (&npm{User: n.User, Dir: n.Name}).program(nil) }

func (n *bootstrap) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if _, err := h.Files.Stat(n.Name + "/package.json"); err != nil {
		return module.Awaits(n.Name+"/package.json", "install what it asks for"), nil
	}
	if what, err := client.Awaits(h, n.program()); err != nil || what != "" {
		return module.Awaits(what, "install what "+n.Name+" asks for"), err
	}
	out, err := n.program().Ask(ctx, h, "install", "--dry-run", "--json", "--no-package-lock")
	if err != nil {
		return module.Diff{}, diag.Library.Hint(err, "look at %s/package.json", n.Name)
	}
	var plan struct{ Added, Changed, Removed int }
	if i := strings.IndexByte(out, '{'); i < 0 || json.Unmarshal([]byte(out[i:]), &plan) != nil {
		return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: "would install what " + n.Name + " asks for"}, nil
	}
	if plan.Added+plan.Changed+plan.Removed == 0 {
		return module.Diff{Comment: n.Name + " has what it asks for"}, nil
	}
	return module.Diff{Changes: value.NewMap(n.Name, "Bootstrapped"),
		Comment: "would install what " + n.Name + " asks for"}, nil
}

func (n *bootstrap) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if _, err := h.Files.Stat(n.Name + "/package.json"); err != nil {
		return module.Report{}, diag.Prerequisite.Hint(err, "require the state that makes it")
	}
	if what, err := client.Awaits(h, n.program()); err != nil || what != "" {
		return module.Report{}, client.OrMissing(err, n.program(), what)
	}
	if _, err := n.program().Do(ctx, h, "install", "--json"); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: value.NewMap(n.Name, "Bootstrapped"),
		Comment: "installed what " + n.Name + " asks for"}, nil
}
