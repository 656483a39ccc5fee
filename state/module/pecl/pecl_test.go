package pecl_test

import (
	"errors"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/module/pecl"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// simulated simulates the pecl program.
func simulated(i clienttest.Installed, args []string, c host.Command) (string, error) {
	switch {
	case args[0] == "list":
		out := "INSTALLED PACKAGES, CHANNEL PECL.PHP.NET:\n=====\nPACKAGE VERSION STATE\n"
		for name, version := range i.Read() {
			out += name + " " + version + " stable\n"
		}
		return out, nil
	case args[0] == "uninstall":
		return "", i.Change(false, args[1:], "-")
	}
	name := args[len(args)-1]
	if name == "asks" && c.Stdin == "" {
		return "", errors.New("pecl waits for an answer")
	}
	if name == "quiet" {
		return "", nil
	}
	return "", i.Change(true, []string{name}, "-")
}

func prepare(t *testing.T, h *statetest.Host) {
	i := clienttest.Installed{Host: h}
	h.Provide(t, map[string]statetest.Program{
		"pecl": func(args []string, c host.Command) (string, error) { return simulated(i, args, c) },
	})
}

func TestConformance(t *testing.T) {
	clienttest.Run(t, "pecl", pecl.Functions(), prepare)
}

func TestWithoutProgram(t *testing.T) {
	clienttest.WithoutProgram(t, pecl.Functions(), "installed", "php-pear")
}
