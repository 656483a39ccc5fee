package value

import (
	"errors"
	"fmt"
)

// Error is an exception as Python would raise it: its class and its message. Authors of templates know these messages,
// and a few filters catch only some classes.
type Error struct {
	Class   string // such as TypeError
	Message string
}

func (e *Error) Error() string { return e.Message }

// Raise returns an *Error with a formatted message.
func Raise(class, format string, args ...any) error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

// ClassOf returns the Python class of an error that this package returned, or "" for any other error.
func ClassOf(err error) string {
	var raised *Error
	var key *KeyError
	var order *OrderError
	switch {
	case errors.As(err, &raised):
		return raised.Class
	case errors.As(err, &key), errors.As(err, &order):
		return "TypeError"
	}
	return ""
}

func typeError(format string, args ...any) error  { return Raise("TypeError", format, args...) }
func valueError(format string, args ...any) error { return Raise("ValueError", format, args...) }

// Limits of the result of one operation, so that no value of a template grows without bound.
const (
	maxText    = 64 << 20 // bytes of a string
	maxItems   = 4 << 20  // items of a list
	maxIntBits = 1 << 16  // bits of an int
)

func checkText(n int) error {
	if n > maxText {
		return Raise("MemoryError", "a string of %d bytes is too long; the limit is %d", n, maxText)
	}
	return nil
}

func checkItems(n int) error {
	if n > maxItems {
		return Raise("MemoryError", "a list of %d items is too long; the limit is %d", n, maxItems)
	}
	return nil
}

// repeated returns how often a value of the given size is repeated, or the error of check if the result exceeds the
// limit.
func repeated(size, n int, check func(int) error) (int, error) {
	if n <= 0 || size == 0 {
		return 0, nil
	}
	if n > maxText/size+1 {
		return 0, check(maxText + 1)
	}
	return n, check(size * n)
}
