package host_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestCommandsDoNotGetTheStoresCredentials runs commands as states do, with the agent's credentials in the
// agent's environment.
func TestCommandsDoNotGetTheStoresCredentials(t *testing.T) {
	t.Setenv("MINIO_SECRET_KEY", "of-the-store")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of-the-store")
	t.Setenv("APPLICATION", "kept")
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{"its own": nil,
		"named by the state": {"AWS_SECRET_ACCESS_KEY=of-the-state"}} {
		out, err := h.Shell(context.Background(), host.Line{Text: "env", Env: env, Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.Stdout, "of-the-store") {
			t.Errorf("%s: a command sees the store's credentials:\n%s", name, out.Stdout)
		}
		lines := strings.Split(out.Stdout, "\n")
		if !slices.Contains(lines, "APPLICATION=kept") {
			t.Errorf("%s: a command does not see the rest of the environment:\n%s", name, out.Stdout)
		}
		if env != nil && !slices.Contains(lines, env[0]) {
			t.Errorf("a command does not see what its state names:\n%s", out.Stdout)
		}
	}
}
