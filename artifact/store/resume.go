package store

import (
	"context"
	"errors"
	"io"
)

// resuming is a body that opens the rest of its object again when it breaks off.
type resuming struct {
	ctx      context.Context
	inner    Store
	patience *patience
	body     io.ReadCloser
	failed   error // error that body returned with its last bytes
	info     Info
	part     Range // requested part
	done     int64 // bytes of it that were read
}

func (b *resuming) Read(p []byte) (int, error) {
	for {
		if b.left() == 0 {
			return 0, io.EOF
		}
		n, err := b.readOnce(p)
		if n > 0 {
			b.done += int64(n)
			b.failed = err // handled by the next Read
			b.patience.received += int64(n)
			return n, nil
		}
		if err == nil || errors.Is(err, io.EOF) && b.left() < 0 {
			return 0, err
		}
		if err = b.reopen(b.broken(err)); err != nil {
			return 0, err
		}
	}
}

func (b *resuming) readOnce(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	if left := b.left(); left >= 0 && int64(len(p)) > left {
		p = p[:left] // a store may send more bytes than the object has
	}
	return b.body.Read(p)
}

// left returns how many bytes are missing, or -1 if the store sent no size.
func (b *resuming) left() int64 {
	if b.info.Size < 0 {
		return -1
	}
	all := max(b.info.Size-b.part.From, 0)
	if b.part.Length > 0 {
		all = min(all, b.part.Length)
	}
	return all - b.done
}

// broken turns the failure of a body into an *Error.
func (b *resuming) broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	var e *Error
	if errors.As(err, &e) || b.ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Op: OpGet, Object: b.info.Key, Kind: ErrUnreachable, Cause: err, Again: true}
}

// reopen opens the rest after the failure err, or returns why it cannot.
func (b *resuming) reopen(err error) error {
	for {
		if b.info.ETag == "" {
			return err // without an ETag, the rest may be of another version
		}
		if err = b.patience.wait(b.ctx, err); err != nil {
			return err
		}
		rest := Range{From: b.part.From + b.done, ETag: b.info.ETag}
		if b.part.Length > 0 {
			rest.Length = b.part.Length - b.done
		}
		body, info, openErr := GetRange(b.patience.within(b.ctx), b.inner, b.info.Key, rest)
		if openErr == nil && info.Size != b.info.Size {
			_ = body.Close() // the body is not used
			return &Error{Op: OpGet, Object: b.info.Key, Kind: ErrPrecondition}
		}
		if openErr == nil {
			_ = b.body.Close() // it has failed already
			b.body, b.failed = body, nil
			return nil
		}
		err = openErr
	}
}

// Close closes the body that is open.
func (b *resuming) Close() error { return b.body.Close() }
