package environ_test

import (
	"context"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/environ"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestEnvironOfTheRun checks that templates see the variables that environ.setenv sets for the run.
func TestEnvironOfTheRun(t *testing.T) {
	h, err := machine.New(host.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	h.Env = host.NewEnvironment("HAVE=1")
	f := environ.Functions(&function.Facts{Host: h, Grains: value.NewMap()})
	call := func(name string, args ...any) any {
		t.Helper()
		v, err := f.Call(context.Background(), name, args, value.NewMap())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	h.Env.Set("NEW", "2")
	h.Env.Unset("HAVE")
	if got := call("environ.get", "NEW"); got != "2" {
		t.Errorf("environ.get gives %v", got)
	}
	if got := call("environ.has_value", "HAVE"); got != false {
		t.Errorf("a removed variable is still set: %v", got)
	}
	if got := call("environ.items"); !value.Equal(got, value.NewMap("NEW", "2")) {
		t.Errorf("environ.items gives %s", value.Repr(got))
	}
}
