package exit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Scripts and timers depend on these numbers.
func TestErrorsHaveTheirCodes(t *testing.T) {
	mistake := &diag.Diagnostic{Message: "no such key"}
	cases := []struct {
		name string
		err  error
		want int
	}{
		{"no error", nil, 0},
		{"any other error", errors.New("a disk is full"), 1},
		{"a mistake in a file", mistake, 2},
		{"mistakes in files", diag.List{mistake}, 2},
		{"refused metadata", &trust.Refused{}, 4},
		{"a withdrawn release", &trust.Withdrawn{}, 4},
		{"a hostile archive", &unpack.Hostile{}, 4},
		{"a store that cannot be reached", store.ErrUnreachable, 5},
		{"a store that throttles", store.ErrThrottled, 5},
		{"a store that denies access", store.ErrForbidden, 5},
		{"an object that a store lacks", store.ErrNotFound, 5},
		{"a project that a store lacks", trust.ErrNoProject, 5},
		{"a channel that a store lacks", trust.ErrNoChannel, 5},
		{"a lock that another run holds", &lock.Held{}, 6},
		{"a run that was interrupted", context.Canceled, 130},
		{"an explicit code", exit.WithCode(exit.RolledBack, errors.New("unit web failed")), 7},
		{"a given code before the kind of the error", exit.WithCode(exit.Starved, &lock.Held{}), 9},
		{"the outermost code of two", exit.WithCode(exit.RollbackFailed, exit.WithCode(exit.Failed, errors.New("x"))), 8},
		{"an interruption before its consequence", errors.Join(store.ErrUnreachable, context.Canceled), 130},
		{"a refusal before the error of its store", errors.Join(store.ErrUnreachable, &trust.Refused{}), 4},
	}
	for _, c := range cases {
		if got := exit.Code(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, got, c.want)
		}
		if c.err == nil {
			continue
		}
		if got := exit.Code(fmt.Errorf("deploying: %w", c.err)); got != c.want {
			t.Errorf("%s, wrapped: exit code %d, want %d", c.name, got, c.want)
		}
	}
}

func TestFailureExitCodesRequireAnError(t *testing.T) {
	if err := exit.WithCode(exit.Failed, nil); err != nil {
		t.Errorf("WithCode of nil returns %v", err)
	}
	cause := errors.New("unit web failed")
	if err := exit.WithCode(exit.Failed, cause); !errors.Is(err, cause) || err.Error() != cause.Error() {
		t.Errorf("the error with a code is %v", err)
	}
}
