package diag

import "errors"

// HostOnly marks err: only the host for which a file is compiled can tell whether the file has a mistake. It does not
// change the text of err.
func HostOnly(err error) error {
	if err == nil {
		return nil
	}
	return hostOnly{err}
}

// IsHostOnly reports whether err, or an error that it wraps, has the mark of [HostOnly] or a method HostOnly that
// returns true.
func IsHostOnly(err error) bool {
	var marked interface{ HostOnly() bool }
	var one *Diagnostic
	return errors.As(err, &marked) && marked.HostOnly() || errors.As(err, &one) && one.HostOnly
}

type hostOnly struct{ error }

// HostOnly implements the mark.
func (hostOnly) HostOnly() bool { return true }

func (h hostOnly) Unwrap() error { return h.error }
