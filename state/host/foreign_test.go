package host_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// environments is a fake of host.Commands that keeps the environment of the last command.
type environments struct{ env []string }

func (s *environments) Allowed(string) error { return nil }

func (s *environments) Run(_ context.Context, c host.Command) (host.Output, error) {
	s.env = c.Env
	return host.Output{}, nil
}

// TestCommandsOfAnotherUserGetNoSecretsOfTheAgentsEnvironment checks that a command with runas does not get the
// environment of the person who started the run.
func TestCommandsOfAnotherUserGetNoSecretsOfTheAgentsEnvironment(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("running a command as another user requires root")
	}
	for _, name := range []string{"CORPUS_TOKEN", "DB_PASSWORD", "GITHUB_TOKEN", "MYSQL_PWD"} {
		t.Setenv(name, "secret")
	}
	t.Setenv("https_proxy", "http://proxy:3128")
	t.Setenv("TZ", "Europe/Berlin")
	commands := &environments{}
	h, err := machine.New(host.Options{Commands: commands})
	must(t, err)
	h.Env.Set("FROM_STATE", "set")
	for place, root := range map[string]string{"the machine": "", "a root": t.TempDir()} {
		_, err := h.Shell(t.Context(), host.Line{Text: "env", RunAs: "nobody", Root: root, Env: []string{"NAMED=yes"}})
		must(t, err)
		if strings.Contains(strings.Join(commands.env, "\n"), "secret") {
			t.Errorf("in %s, a command of the user nobody gets %q", place, commands.env)
		}
		for _, want := range []string{"https_proxy=http://proxy:3128", "TZ=Europe/Berlin", "FROM_STATE=set", "NAMED=yes",
			"USER=nobody", "LOGNAME=nobody"} {
			if !slices.Contains(commands.env, want) {
				t.Errorf("in %s, a command of the user nobody does not get %s: %q", place, want, commands.env)
			}
		}
	}
	_, err = h.Shell(t.Context(), host.Line{Text: "env"})
	must(t, err)
	if !slices.Contains(commands.env, "DB_PASSWORD=secret") {
		t.Error("a command of the agent's own user does not get its environment")
	}
}
