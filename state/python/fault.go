package python

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// Unstarted is the error of a host without python3, or whose python3 does not start. It would fail every release.
type Unstarted struct{ Err error }

func (u *Unstarted) Error() string { return u.Err.Error() }

// Unwrap returns the reason.
func (u *Unstarted) Unwrap() error { return u.Err }

// HostFault is part of diag.HostFault.
func (*Unstarted) HostFault() {}

// Killed is the error of a python3 that SIGKILL ended during a call. The kernel sends it to a process when the host has
// no memory.
type Killed struct{ Err error }

func (k *Killed) Error() string { return k.Err.Error() }

// Unwrap returns the failure of the call.
func (k *Killed) Unwrap() error { return k.Err }

// HostFault is part of diag.HostFault.
func (*Killed) HostFault() {}

// killed is the description of a process that SIGKILL ended.
const killed = "signal: killed"

// Refused is the error of a file that the package salt refused to use because of another user of the host, who could
// otherwise have each release fail.
type Refused struct{}

func (*Refused) Error() string { return "a file of another user was refused" }

// HostFault is part of diag.HostFault.
func (*Refused) HostFault() {}

// printedByHost returns the error of the host that the text of an exception has, or nil for none.
func printedByHost(text string) error {
	if errno := process.PrintedByHost(text); errno != 0 {
		return errno
	}
	if _, rest, ok := strings.Cut(text, ": refused, since "); ok &&
		(strings.Contains(rest, " [C072])") || strings.Contains(rest, " [C073])")) {
		return &Refused{}
	}
	return nil
}

// Failure returns the error of a module with a text. It wraps the error of the host whose message is in the text, if
// there is one, as the output of a command does.
func Failure(text string) error {
	err := errors.New(text)
	if cause := printedByHost(text); cause != nil {
		return &ofHost{err, cause}
	}
	return err
}

// ofHost is an error with an error of the host that its text names.
type ofHost struct{ err, errno error }

func (o *ofHost) Error() string   { return o.err.Error() }
func (o *ofHost) Unwrap() []error { return []error{o.err, o.errno} }

// ended returns the error of a process that closed its pipe. Process is how it ended, printed is its output.
func ended(doing, process, printed string) error {
	err := fmt.Errorf("%s (%s)%s", doing, process, lastLines(printed))
	if strings.Contains(process, killed) {
		return &Killed{err}
	}
	return err
}
