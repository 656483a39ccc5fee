package python

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Unreached is an error of a module that could not reach a server, such as ConnectionRefusedError.
type Unreached struct{ Errno syscall.Errno }

func (u *Unreached) Error() string { return u.Errno.Error() }

// Unwrap returns the number.
func (u *Unreached) Unwrap() error { return u.Errno }

// HostFault is part of diag.HostFault.
func (*Unreached) HostFault() {}

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

// Failure returns the error of a module with a text, which may end with a traceback. It wraps the error of the host
// that the text has, if there is one, as the output of a command does.
func Failure(text string) error {
	err := errors.New(text)
	said, _, _ := strings.Cut(text, "\n  File \"") // source text in a traceback says nothing about the host
	if strings.Contains(said, endedWhileItRan+" ("+killed) {
		return &Killed{err}
	}
	if cause := printedByHost(said); cause != nil {
		return &ofHost{err, cause}
	}
	return err
}

// printedByHost returns the error of the host that is in the text of an exception, or nil for none.
func printedByHost(text string) error {
	if errno := process.PrintedByHost(text); errno != 0 {
		return errno
	}
	if _, rest, ok := strings.Cut(text, ": refused, since "); ok &&
		(strings.Contains(rest, " [C072])") || strings.Contains(rest, " [C073])")) {
		return &Refused{}
	}
	for _, m := range numbered().FindAllStringSubmatch(text, -1) {
		if number, err := strconv.Atoi(m[1]); err == nil && unreached(number) != 0 {
			return &Unreached{unreached(number)}
		}
	}
	for class, errno := range map[string]syscall.Errno{"ConnectionRefusedError": syscall.ECONNREFUSED,
		"ConnectionResetError": syscall.ECONNRESET, "ConnectionAbortedError": syscall.ECONNABORTED} {
		if strings.Contains(text, class) {
			return &Unreached{errno}
		}
	}
	if socketTimeout().MatchString(text) {
		return &Unreached{syscall.ETIMEDOUT}
	}
	return nil
}

// socketTimeout matches the exception of a socket that timed out, which has no number.
func socketTimeout() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:TimeoutError|timeout): [^\n]*timed out`)
}

// numbered matches how Python prints the number of an OSError.
func numbered() *regexp.Regexp {
	return regexp.MustCompile(`\[Errno (-?\d+)\]`)
}

// tryAgain is the number of socket.gaierror while no name server answers, EAI_AGAIN.
const tryAgain = -3

// unreached returns the error number for a server that was not reached, or 0 for another number of an OSError.
func unreached(number int) syscall.Errno {
	if number == tryAgain {
		return syscall.ENETUNREACH
	}
	all := []syscall.Errno{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ETIMEDOUT,
		syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ENETUNREACH, syscall.ENETDOWN}
	if errno := syscall.Errno(max(number, 0)); slices.Contains(all, errno) {
		return errno
	}
	return 0
}

// ofHost is an error with an error of the host that its text names.
type ofHost struct {
	error

	cause error
}

func (o *ofHost) Unwrap() error { return o.cause }

// ended returns the error of a process that closed its pipe. Process is how it ended, printed is its output.
func ended(doing, process, printed string) error {
	err := fmt.Errorf("%s (%s)%s", doing, process, lastLines(printed))
	if strings.Contains(process, killed) {
		return diag.Python.Hint(&Killed{err}, "the kernel kills a process where memory runs out, which `journalctl -k` "+
			"shows; otherwise see what the module does")
	}
	return err
}
