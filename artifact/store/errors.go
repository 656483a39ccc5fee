package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Errors that callers check for. Errors of a store wrap one of these, ErrUnreachable if nothing more specific is
// known; a context's error (cancelled, or deadline exceeded) is wrapped too.
var (
	ErrNotFound     = errors.New("no such object")
	ErrForbidden    = errors.New("access denied")
	ErrPrecondition = errors.New("the object was changed by another writer")
	ErrUnchanged    = errors.New("the object has not changed") // since the version of Range.Unless
	ErrReadOnly     = errors.New("the store is read-only")
	ErrUnreachable  = errors.New("the store cannot be reached")
	ErrThrottled    = errors.New("the store asks to slow down")
	ErrPieces       = errors.New("the store cannot make an object of its pieces") // see wire.WithPieces

	// ErrNoStore is an ErrUnreachable: the server or disk responds, but the bucket or directory
	// does not exist.
	ErrNoStore error = unreachable("there is no such bucket or directory")
	// ErrCredentials is an ErrUnreachable: credentials are missing, wrong or expired, or the clock
	// is too wrong for signatures to be accepted. It differs from ErrForbidden, which means that
	// valid credentials may not access one object.
	ErrCredentials error = unreachable("it does not accept our credentials")
)

// unreachable is a reason for ErrUnreachable. It is made before main without package fmt, whose pools allocate more or
// less.
type unreachable string

func (u unreachable) Error() string { return ErrUnreachable.Error() + ": " + string(u) }
func (unreachable) Unwrap() error   { return ErrUnreachable }

// Op is an operation of a store.
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

// Error is a failed operation on an object, with its cause and whether to retry it.
type Error struct {
	Op     Op
	Object string        // the object as people write it: s3://bucket/prefix/key, or a path
	Kind   error         // one of the errors above, or the cause of a cancelled context
	Cause  error         // the error of the server, the network or the disk; may be nil
	Again  bool          // the same request may succeed if it is retried
	Kept   int64         // bytes of a Put that the store keeps for a retry
	After  time.Duration // how long the store asks to wait before a retry; 0 if it does not
	Now    time.Time     // the store's clock when it answered; zero if it sent none
	// Stalled is how long nothing came before a Timeout ended the request; 0 for another failure.
	Stalled time.Duration
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %s: %v", e.Op.doing(), e.Object, e.Kind)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Passing reports whether the failure is a temporary one of the network or the server. A name that the name servers do
// not have is not temporary.
func (e *Error) Passing() bool {
	var dns *net.DNSError
	return e.Again && !(errors.As(e.Cause, &dns) && dns.IsNotFound)
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Stopped returns the error of an operation whose context has ended.
func Stopped(ctx context.Context, op Op, object string) error {
	why := context.Cause(ctx)
	var late *Error
	switch {
	case errors.As(why, &late): // the error of a Timeout is specific enough
		return why
	case errors.Is(why, context.DeadlineExceeded):
		return &Error{Op: op, Object: object, Kind: ErrUnreachable, Cause: why}
	}
	return &Error{Op: op, Object: object, Kind: why}
}

// retryable reports whether to retry after an error, which need not be an *Error.
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
