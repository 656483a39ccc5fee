package environ_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/environ"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "environ",
		Functions: func(*statetest.Host) module.Table { return environ.Functions() },
		Prepare: func(_ *testing.T, h *statetest.Host) {
			h.Env = host.NewEnvironment("HAVE=1", "EMPTY=")
			h.Watch("the environment", func() string { return strings.Join(h.Env.All(), "\n") })
		},
		Cases: statetest.Load(t, "../../../testdata/modules/system/environ.yaml"),
	})
}

func TestCommandsHaveTheVariables(t *testing.T) {
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Converge(t, h, environ.Functions(), "setenv", value.NewMap("name", "CORPUS_TEST", "value", "seen"))
	out, err := h.Shell(context.Background(), host.Line{Text: "echo $CORPUS_TEST"})
	if err != nil || out.Stdout != "seen\n" {
		t.Errorf("a command that follows sees %q, %v", out.Stdout, err)
	}
	other, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := other.Env.Get("CORPUS_TEST"); ok {
		t.Errorf("another run finds %q", v)
	}
}
