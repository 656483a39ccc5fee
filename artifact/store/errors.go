package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// What callers branch on. Errors from a store wrap one of these, or are ErrUnreachable when
// nothing better is known; a context's own error (cancelled, or out of time) stays visible too.
var (
	ErrNotFound     = errors.New("no such object")
	ErrForbidden    = errors.New("access denied")
	ErrPrecondition = errors.New("the object was changed by someone else")
	ErrReadOnly     = errors.New("the store is read-only")
	ErrUnreachable  = errors.New("the store cannot be reached")
	ErrThrottled    = errors.New("the store asks to slow down")

	// ErrNoStore is an ErrUnreachable: the server or disk answers, but the bucket or directory
	// does not exist.
	ErrNoStore = fmt.Errorf("%w: there is no such bucket or directory", ErrUnreachable)
	// ErrCredentials is an ErrUnreachable: credentials are missing, wrong or expired, or the clock
	// is too wrong for a signature to be accepted. It is apart from ErrForbidden, which says that
	// known credentials may not touch one object.
	ErrCredentials = fmt.Errorf("%w: it does not accept our credentials", ErrUnreachable)
)

// Op is what was asked of a store.
type Op string

// The operations of a Store.
const (
	OpGet    Op = "get"
	OpPut    Op = "put"
	OpList   Op = "list"
	OpDelete Op = "delete"
)

func (o Op) doing() string {
	switch o {
	case OpGet:
		return "reading"
	case OpPut:
		return "writing"
	case OpList:
		return "listing"
	case OpDelete:
		return "deleting"
	}
	return string(o)
}

// Error tells which operation on which object failed, why, and whether another try makes sense.
type Error struct {
	Op     Op
	Object string        // the object as a person writes it: s3://bucket/prefix/key, or a path
	Kind   error         // one of the errors above, or why a context was cancelled
	Cause  error         // what the server, the network or the disk said; may be nil
	Again  bool          // the same request may succeed a little later
	Kept   int64         // bytes of a Put that the store keeps for another try
	After  time.Duration // how long the store asks to wait before that; 0 when it does not say
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: %v", e.Op.doing(), e.Object, e.Kind)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Passing reports whether the network or a server is to blame for the failure in a way that passes. A name that the name
// servers do not know does not.
func (e *Error) Passing() bool {
	var dns *net.DNSError
	return e.Again && !(errors.As(e.Cause, &dns) && dns.IsNotFound)
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Stopped is the error of an operation whose context has ended.
func Stopped(ctx context.Context, op Op, object string) error {
	why := context.Cause(ctx)
	var told *Error
	switch {
	case errors.As(why, &told): // a Timeout says itself what happened
		return why
	case errors.Is(why, context.DeadlineExceeded):
		return &Error{Op: op, Object: object, Kind: ErrUnreachable, Cause: why}
	}
	return &Error{Op: op, Object: object, Kind: why}
}

// retryable reports whether another try makes sense, also for errors that are no *Error.
func retryable(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Again
	}
	if errors.Is(err, ErrNoStore) || errors.Is(err, ErrCredentials) {
		return false
	}
	return errors.Is(err, ErrThrottled) || errors.Is(err, ErrUnreachable)
}
