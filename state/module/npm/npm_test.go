package npm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/module/npm"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// simulated simulates the npm program.
func simulated(i clienttest.Installed, args []string, _ host.Command) (string, error) {
	switch {
	case args[0] == "list":
		tree := map[string]map[string]map[string]string{"dependencies": {}}
		for name, version := range i.Read() {
			tree["dependencies"][name] = map[string]string{"version": version}
		}
		data, err := json.Marshal(tree)
		return string(data), err
	case slices.Contains(args, "--dry-run"):
		return fmt.Sprintf(`{"added": %d}`, 1-min(1, len(i.Read()))), nil
	case args[0] == "install" && len(clienttest.Words(args)) == 1:
		return "", i.Change(true, []string{"dependency"}, "@")
	case args[0] == "install":
		return "", i.Change(true, clienttest.Words(args)[1:], "@")
	}
	return "", i.Change(false, clienttest.Words(args)[1:], "@")
}

func prepare(t *testing.T, h *statetest.Host) {
	i := clienttest.Installed{Host: h}
	h.Provide(t, map[string]statetest.Program{
		"npm": func(args []string, c host.Command) (string, error) { return simulated(i, args, c) },
	})
}

func TestConformance(t *testing.T) {
	clienttest.Run(t, "npm", npm.Functions(), prepare)
}

func TestWithoutProgram(t *testing.T) {
	clienttest.WithoutProgram(t, npm.Functions(), "installed", "npm")
}
