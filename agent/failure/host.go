// Package failure classifies errors: whether the host or a release is at fault, and whether two releases failed in the
// same way.
package failure

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/packages"
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// hostErrors returns the system call errors for which no release is at fault: another release would have failed with
// them as well.
func hostErrors() []syscall.Errno {
	return []syscall.Errno{
		// a disk or a share
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.ESTALE, syscall.ENODEV, syscall.ENXIO,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENOBUFS, // a limit, or memory
		syscall.ETIMEDOUT, syscall.ENETUNREACH,
		syscall.ENOSYS, // an old kernel, or a container's filter
	}
}

// OfHost reports whether the host, and not a release, is at fault for an error.
func OfHost(err error) bool {
	var busy *packages.Busy
	var unfinished *packages.Unfinished
	var work *workError
	var occupied *service.Occupied // another process has the port of the release
	var unstarted *noexec
	var states *state.Failure
	var source *external.Failed  // a source of pillar data, which the host's configuration names
	var unsafe *walk.UnsafeError // an unprivileged user of this host prepared it
	var inTheWay *state.Obstructed
	var fault diag.HostFault
	if errors.As(err, &states) && ofHost(states) || errors.As(err, &unsafe) {
		return true
	}
	if errors.As(err, &busy) || errors.As(err, &unfinished) || errors.As(err, &work) || errors.As(err, &occupied) ||
		errors.As(err, &unstarted) || errors.As(err, &source) || errors.As(err, &inTheWay) ||
		errors.As(err, &fault) {
		return true
	}
	return HostErrno(err)
}

func ofHost(f *state.Failure) bool {
	return f.Outage() || f.Refused() || f.Obstructed() || f.Immutable()
}

// AlsoSources reports whether sources of pillar data failed the deploy, and nothing else failed during the rollback.
// Nothing more can be done before they answer.
func AlsoSources(cause, back error) bool {
	return also[*external.Failed](cause, back, func(err error) error { return err })
}

// AlsoPython reports whether the deploy failed since python3 does not start, is killed or reaches no server, and
// nothing else failed during the rollback. Nothing more can be done before that ends.
func AlsoPython(cause, back error) bool {
	same := func(err error) error { return err }
	return also[*python.Unstarted](cause, back, same) || also[*python.Killed](cause, back, same) ||
		also[*python.Unreached](cause, back, same)
}

// AlsoGrains reports whether the deploy failed since grains of the host are unknown, and nothing else failed during the
// rollback.
func AlsoGrains(cause, back error) bool {
	return also[*UnknownGrains](cause, back, func(err error) error { return err })
}

// UnknownGrains is the error of a run that lacks grains because of a fault of the host. What it would do without them
// is not what its releases say.
type UnknownGrains struct{ error }

// Unwrap returns the reason.
func (u *UnknownGrains) Unwrap() error { return u.error }

// HostFault is part of diag.HostFault.
func (*UnknownGrains) HostFault() {}

// OfGrains returns an *UnknownGrains with the first of the reasons why grains are missing for which the host is at
// fault, or nil. If a file or program of the release is at fault, its grains are missing.
func OfGrains(reasons []error) error {
	for _, reason := range reasons {
		if _, fault := errors.AsType[diag.HostFault](reason); fault || HostErrno(reason) {
			return diag.Grains.Hint(&UnknownGrains{fmt.Errorf("grains: %w", reason)},
				"the run changes nothing without these grains; see what is wrong with the host")
		}
	}
	return nil
}

// ExceptAbsentPython returns the reasons without those that the host has no python3. A host that never had one never
// had the grains of modules either, so states without them take nothing away from it.
func ExceptAbsentPython(reasons []error) []error {
	return structsort.Without(reasons, func(reason error) bool { return errors.Is(reason, python.ErrAbsent) })
}

// AlsoKeys reports whether the deploy failed since this host lacks the keys of encrypted values, and nothing else
// failed during the rollback. Nothing more can be done before the keys are back.
func AlsoKeys(cause, back error) bool {
	return also[*session.KeyFault](cause, back, func(err error) error { return err })
}

// Killed reports whether a module's python3 was killed during a call, or the script of a package. Another release may
// fail with that as well, but so does a module or script that takes all of the memory.
func Killed(err error) bool {
	_, is := errors.AsType[*python.Killed](err)
	changing, of := errors.AsType[*packages.Killed](err)
	return is || of && changing.Script
}

// HostErrno reports whether an error wraps one of hostErrors.
func HostErrno(err error) bool {
	return slices.ContainsFunc(hostErrors(), func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}

// workError is a failure of the agent's own work on the host between the steps of a release, such as moving links.
type workError struct{ error }

// Unwrap returns the failure.
func (e *workError) Unwrap() error { return e.error }

// OfWork marks an error as a failure of the agent's own work.
func OfWork(err error) error {
	if err == nil {
		return nil
	}
	return &workError{err}
}
