package alternatives_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/alternatives"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// real runs the host's update-alternatives on the tree of a case.
type real struct{ dir string }

func (real) Allowed(string) error { return nil }

func (r real) Run(ctx context.Context, c host.Command) (host.Output, error) {
	var out, complaint strings.Builder
	args := append([]string{"--root", r.dir}, c.Argv[1:]...)
	cmd := exec.CommandContext(ctx, "update-alternatives", args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &complaint, c.Env
	_ = cmd.Run() // the exit code is in the output
	return host.Output{Code: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: complaint.String()}, nil
}

func TestConformance(t *testing.T) {
	if _, err := exec.LookPath("update-alternatives"); err != nil {
		t.Skip("this machine has no update-alternatives to test with")
	}
	statetest.Run(t, statetest.Suite{
		State:     "alternatives",
		Functions: func(*statetest.Host) module.Table { return alternatives.Functions() },
		Prepare: func(t *testing.T, h *statetest.Host) {
			statetest.UseTools(t, h, map[string]statetest.Tool{"update-alternatives": nil})
			if err := os.MkdirAll(h.Dir+"/var/log", 0o755); err != nil {
				t.Fatal(err)
			}
			h.Commands = real{h.Dir}
		},
		Cases: statetest.Load(t, "../../../testdata/modules/system/alternatives.yaml"),
	})
}
