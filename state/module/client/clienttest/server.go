package clienttest

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// As makes a command run as an unprivileged user, which database servers require.
func As(t *testing.T, name string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		return cmd
	}
	u, err := user.Lookup(name)
	if err != nil {
		t.Skipf("this machine has no user %s to run a server as", name)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return cmd
}

// Private returns a temporary directory of that user.
func Private(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if u, err := user.Lookup(name); err == nil && os.Geteuid() == 0 {
		uid, _ := strconv.Atoi(u.Uid)
		if err := os.Chown(dir, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Real runs a client of the machine with additional arguments before the given ones.
func Real(name string, before ...string) statetest.Program {
	return func(args []string, c host.Command) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, append(before, args...)...)
		cmd.Env, cmd.Stdin = append(slices.Clone(c.Env), "PATH="+os.Getenv("PATH")), strings.NewReader(c.Stdin)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return string(out), statetest.Exit{Code: cmd.ProcessState.ExitCode(), Text: stderr.String()}
		}
		return string(out), nil
	}
}

// RunStates runs the cases of several states on one server.
func RunStates(t *testing.T, tables module.Registry, programs map[string]statetest.Program,
	cases map[string][]statetest.Case) {
	t.Helper()
	for state, list := range cases {
		t.Run(state, func(t *testing.T) {
			statetest.Run(t, statetest.Suite{
				State:     state,
				Functions: func(*statetest.Host) module.Table { return tables[state] },
				Prepare:   func(t *testing.T, h *statetest.Host) { h.Provide(t, programs) },
				Cases:     list,
			})
		})
	}
}

// Case returns a case that runs as root.
func Case(function string, first *statetest.Want, items ...any) statetest.Case {
	return statetest.Case{Name: function + " " + value.Repr(value.NewList(items...)), Function: function,
		Arguments: value.NewMap(append(items, "user", "root")...), First: first, Second: again(first)}
}

func again(first *statetest.Want) *statetest.Want {
	if first.Result == true {
		return &statetest.Want{Result: true, Changes: value.NewMap()}
	}
	return nil
}

// Did returns a successful result with changes.
func Did(items ...any) *statetest.Want {
	return &statetest.Want{Result: true, Changes: value.NewMap(items...)}
}

// Fails returns a failed result with a comment.
func Fails(comment string) *statetest.Want { return &statetest.Want{Result: false, Comment: comment} }
