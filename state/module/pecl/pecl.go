// Package pecl implements pecl.installed and pecl.removed, which manage PHP extensions with the pecl program.
package pecl

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Functions returns the functions of pecl.
func Functions() module.Table {
	return module.Table{
		"installed": func() module.Resource { return &installed{PreferredState: "stable"} },
		"removed":   func() module.Resource { return &removed{} },
	}
}

// pecl holds the arguments that the states have in common.
type pecl struct {
	Name string `sls:"name"`
}

func (*pecl) program() program.Program {
	return program.Program{Name: "pecl", Package: "php-pear", Remote: true}
}

// version returns the installed version, "" if there is none.
func (p *pecl) version(ctx context.Context, h *host.Host) (string, error) {
	out, err := p.program().Ask(ctx, h, "list")
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == p.Name {
			return f[1], err
		}
	}
	return "", err
}
