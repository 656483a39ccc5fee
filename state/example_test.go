package state_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// shown prints the outcome of each step.
type shown struct{}

func (shown) StepStarted(*compile.Step) {}
func (shown) StepDone(r *exec.Result) {
	switch {
	case r.Outcome == exec.Pending:
		fmt.Println(r.ID(), "would change")
	case r.Outcome == exec.Succeeded && r.Changes.Len() > 0:
		fmt.Println(r.ID(), "changed")
	case r.Outcome == exec.Succeeded:
		fmt.Println(r.ID(), "is in order")
	default:
		fmt.Println(r.ID(), "failed:", r.Comment)
	}
}

// Example applies the SLS files of a host: first a dry run, then a run, then another run. The host is a directory here;
// without a Root it is the machine itself.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS("testdata/example")); err != nil {
		fmt.Println(err)
		return
	}
	h, err := machine.New(host.Options{Root: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, dry := range []bool{true, false, false} {
		program, err := state.Native{}.Compile(context.Background(), state.Request{
			Host: h, Grains: value.NewMap("id", "web1"), StateRoots: []string{"/srv/states"}, Test: dry,
		})
		if err != nil {
			fmt.Println(err) // a list of problems, each as file:line:col: message
			return
		}
		if _, err := program.Apply(context.Background(), shown{}); err != nil {
			fmt.Println(err)
			return
		}
	}
	motd, err := os.ReadFile(filepath.Join(dir, "etc/motd"))
	fmt.Printf("%q, %v\n", motd, err)
	// Output:
	// /etc/motd would change
	// /etc/motd changed
	// /etc/motd is in order
	// "Welcome to web1\n", <nil>
}
