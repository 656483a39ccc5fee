// Package exit defines the exit codes. Scripts, timers and monitoring depend on them, so a code never changes its
// meaning.
package exit

import (
	"context"
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The exit codes of both programs.
const (
	OK       = 0 // converged; done
	Internal = 1 // an error without a code of its own
	Usage    = 2 // command line, configuration, or SLS that does not compile
	// states failed, or a first deploy failed and there is nothing to roll back to; with corpus, a part was left
	// undone
	Failed         = 3
	Refused        = 4   // verification refused something
	Unreachable    = 5   // the store cannot be reached
	Locked         = 6   // another run is in progress
	RolledBack     = 7   // a deploy failed and was rolled back
	RollbackFailed = 8   // a deploy and its rollback failed
	Starved        = 9   // another run has held the lock for longer than the interval at which runs are started
	Interrupted    = 130 // by a signal
	BrokenPipe     = 141 // the output was closed before all of it was written, as for a program that SIGPIPE ends
)

// WithCode sets the exit code of an error whose kind does not determine it.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &coded{code: code, err: err}
}

type coded struct {
	code int
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// Code returns the exit code of an error.
func Code(err error) int {
	var given *coded
	var list diag.List
	var one *diag.Diagnostic
	var refused *trust.Refused
	var withdrawn *trust.Withdrawn
	var hostile *unpack.Hostile
	var held *lock.Held
	switch {
	case err == nil:
		return OK
	case errors.As(err, &given):
		return given.code
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.As(err, &held):
		return Locked
	case errors.As(err, &refused), errors.As(err, &withdrawn), errors.As(err, &hostile):
		return Refused
	case outOfReach(err):
		return Unreachable
	case errors.As(err, &list), errors.As(err, &one):
		return Usage
	}
	return Internal
}

// Text returns the text of an error as people read it. A cancelled context means that a signal interrupted the command.
func Text(err error) string {
	text := strings.TrimSpace(err.Error())
	if !errors.Is(err, context.Canceled) {
		return text
	}
	const said = "interrupted"
	text = strings.ReplaceAll(text, context.Canceled.Error(), said)
	if rest, ok := strings.CutSuffix(text, ": "+said); ok && strings.Contains(rest, said) {
		return rest
	}
	return text
}

// outOfReach reports whether a store, or an object that a host needs from it, is unavailable.
func outOfReach(err error) bool {
	for _, reason := range []error{store.ErrUnreachable, store.ErrThrottled, store.ErrForbidden, store.ErrNotFound,
		trust.ErrNoProject, trust.ErrNoChannel} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}
