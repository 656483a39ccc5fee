package statetest

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Program imitates a program: it receives the arguments and returns the output. An error makes it fail and is its error
// output.
type Program func(args []string, c host.Command) (string, error)

// Exit is an error of a Program with its exit code; other errors have code 1.
type Exit struct {
	Code int
	Text string
}

func (e Exit) Error() string { return e.Text }

// Provide adds imitated programs to /usr/bin of the host of a case. A command with another program is an error.
func (h *Host) Provide(t *testing.T, programs map[string]Program) {
	t.Helper()
	tree := Tree{}
	for name := range programs {
		if !strings.HasPrefix(name, "/") {
			name = "/usr/bin/" + name
		}
		tree[name] = File("imitated").With("0755", "", "")
	}
	h.Build(t, tree)
	h.Commands = Commands(func(c host.Command) (host.Output, error) {
		program, ok := programs[c.Argv[0]]
		if !ok {
			program, ok = programs[path.Base(c.Argv[0])]
		}
		if !ok {
			return host.Output{}, fmt.Errorf("the case does not imitate %s", strings.Join(c.Argv, " "))
		}
		out, err := program(c.Argv[1:], c)
		var exit Exit
		switch {
		case errors.As(err, &exit):
			return host.Output{Code: exit.Code, Stdout: out, Stderr: exit.Text}, nil
		case err != nil:
			return host.Output{Code: 1, Stdout: out, Stderr: err.Error()}, nil
		}
		return host.Output{Stdout: out}, nil
	})
}
