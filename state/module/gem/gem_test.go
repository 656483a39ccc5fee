package gem_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/module/gem"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// simulated simulates the gem program.
func simulated(i clienttest.Installed, args []string, _ host.Command) (string, error) {
	switch args[0] {
	case "list":
		var out strings.Builder
		for name, version := range i.Read() {
			fmt.Fprintf(&out, "%s (%s, default: 0.1 x86)\n", name, version)
		}
		return out.String(), nil
	case "install":
		name := clienttest.Words(args[1:], "--version", "--source", "--http-proxy")[0]
		for n, arg := range args {
			if arg == "--version" {
				name += "=" + strings.TrimLeft(args[n+1], ">= ")
			}
		}
		return "", i.Change(true, []string{name}, "=")
	}
	return "", i.Change(false, clienttest.Words(args[1:]), "=")
}

func prepare(t *testing.T, h *statetest.Host) {
	i := clienttest.Installed{Host: h}
	h.Provide(t, map[string]statetest.Program{
		"gem": func(args []string, c host.Command) (string, error) { return simulated(i, args, c) },
	})
}

func TestConformance(t *testing.T) {
	clienttest.Run(t, "gem", gem.Functions(), prepare)
}

func TestWithoutProgram(t *testing.T) {
	clienttest.WithoutProgram(t, gem.Functions(), "installed", "ruby")
}
