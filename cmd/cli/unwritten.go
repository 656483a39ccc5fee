package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// unwritten returns the exit code of a command that has ended with a code. If its output could not be written, success
// becomes a failure, and standard error gets the reason: a script that reads the output must not take a part for all of
// it. A closed pipe has no message, as with other programs, which SIGPIPE ends.
func (s IO) unwritten(code int) int {
	err := s.writeError()
	if err == nil {
		return code
	}
	failed := exit.Internal
	if errors.Is(err, syscall.EPIPE) {
		failed = exit.BrokenPipe
	} else {
		s.fail(diag.Output.Hint(fmt.Errorf("writing the output: %w", err),
			"the command has ended, and only its output is incomplete; free space where it is written"), failed, false)
	}
	if code != exit.OK {
		return code
	}
	return failed
}

// writeError returns the first error of a write to standard output, or nil. It flushes the writer first.
func (s IO) writeError() error {
	out, ok := s.Out.(*redact.Writer)
	if !ok {
		return nil
	}
	_ = out.Flush() // Err returns the first error
	err := out.Err()
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err // a user did not give the name of standard output
	}
	return err
}

// isUnwritten reports whether the only failure of a command is that its output could not be written, which unwritten
// reports.
func (s IO) isUnwritten(err error) bool {
	failed := s.writeError()
	return failed != nil && errors.Is(err, failed) && exit.Code(err) == exit.Internal
}
