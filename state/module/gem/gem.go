// Package gem implements gem.installed and gem.removed, which manage Ruby gems with the gem program.
package gem

import (
	"context"
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Functions returns the functions of gem.
func Functions() module.Table {
	return module.Table{
		"installed": func() module.Resource { return &installed{} },
		"removed":   func() module.Resource { return &removed{} },
	}
}

// gem holds the arguments that the states have in common.
type gem struct {
	Name   string `sls:"name"`
	Ruby   string `sls:"ruby"`
	GemBin string `sls:"gem_bin"`
	User   string `sls:"user"`
}

func (g *gem) program() program.Program {
	p := program.Program{Name: g.GemBin, Package: "ruby", RunAs: g.User, Remote: true, Hide: redact.URLs}
	if p.Name == "" {
		p.Name = "gem"
	}
	return p
}

func (g *gem) Valid() error {
	if g.Ruby == "" || g.GemBin != "" {
		return nil
	}
	return diag.Argument.Hint(errors.New("the agent does not search for rubies of rvm and rbenv"),
		"name the gem program of that ruby in gem_bin")
}

// versions returns the installed versions of the gem.
func (g *gem) versions(ctx context.Context, h *host.Host) ([]string, error) {
	out, err := g.program().Ask(ctx, h, "list", "--local", "--exact", g.Name)
	for line := range strings.Lines(out) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " (")
		if !ok || name != g.Name {
			continue
		}
		var versions []string
		for v := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
			v = strings.TrimPrefix(strings.TrimSpace(v), "default: ")
			v, _, _ = strings.Cut(v, " ") // the platform may follow
			versions = append(versions, v)
		}
		return versions, err
	}
	return nil, err
}
