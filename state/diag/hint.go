package diag

import (
	"errors"
	"slices"
	"strings"
)

type hinted struct {
	err  error
	hint string
}

// KeepHint adds the hint of another error, which ends with a code, to an error. It returns nil for a nil error.
func KeepHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &hinted{err: err, hint: hint}
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// HintOf returns the first hint attached to err, or that of an error type with a Hint method, or "". A hint ends with
// the code of its topic.
func HintOf(err error) string {
	var h *hinted
	if errors.As(err, &h) {
		return h.hint
	}
	var d *Diagnostic
	if errors.As(err, &d) {
		return d.Hint
	}
	var own interface{ Hint() string }
	if errors.As(err, &own) {
		return own.Hint()
	}
	return ""
}

// HintsOf returns the hints of all errors that err joins, each once. A hint stands for all errors below it.
func HintsOf(err error) (hints []string) {
	add := func(hint string) {
		if hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	switch e := err.(type) { //nolint:errorlint // walks the tree itself
	case *hinted:
		if add(e.hint); e.hint == "" {
			return HintsOf(e.err)
		}
	case *Diagnostic:
		add(e.Hint)
	case List:
		for _, d := range e {
			add(d.Hint)
		}
	case interface{ Hint() string }:
		add(e.Hint())
	case interface{ Unwrap() error }:
		return HintsOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			for _, hint := range HintsOf(one) {
				add(hint)
			}
		}
	}
	return hints
}

// HintLines formats each line of a hint, which may join those of several errors, as a line that begins with "hint: ".
func HintLines(hint string) string {
	return "hint: " + strings.ReplaceAll(hint, "\n", "\nhint: ")
}

// Parts returns the errors that errors.Join joined in err, and the diagnostics of lists, in order, each once. An error
// that wraps a list follows the list if it has a hint of its own.
func Parts(err error) []error {
	var parts []error
	for _, part := range takenApart(err) {
		same := func(other error) bool { return other.Error() == part.Error() }
		if !slices.ContainsFunc(parts, same) {
			parts = append(parts, part)
		}
	}
	return parts
}

func takenApart(err error) (parts []error) {
	if err == nil {
		return nil
	}
	several, is := err.(interface{ Unwrap() []error }) //nolint:errorlint // splits joined errors
	if is && !isList(err) {
		below := several.Unwrap()
		if joined := errors.Join(below...); joined != nil && joined.Error() == err.Error() {
			for _, one := range below {
				parts = append(parts, takenApart(one)...)
			}
			return parts
		}
	}
	if below := errors.Unwrap(err); below != nil && below.Error() == err.Error() && HintOf(below) == HintOf(err) {
		return takenApart(below)
	}
	var list List
	if !errors.As(err, &list) {
		return []error{err}
	}
	for _, d := range list {
		parts = append(parts, d)
	}
	if around := around(err, list); around != nil {
		parts = append(parts, around)
	}
	return parts
}

// around returns an error that wraps a list, without the list; nil if it adds no hint to those of the list.
func around(err error, list List) error {
	known := HintsOf(list)
	hints := slices.DeleteFunc(strings.Split(strings.Join(HintsOf(err), "\n"), "\n"), func(hint string) bool {
		return hint == "" || slices.Contains(known, hint)
	})
	before, after, found := strings.Cut(err.Error(), list.Error())
	if len(hints) == 0 || !found || before == "" {
		return nil
	}
	text := strings.TrimSuffix(before, ": ")
	if after != "" {
		text = before + "as above" + after
	}
	return KeepHint(errors.New(text), strings.Join(hints, "\n"))
}

// AllHints returns the hints of all parts of err, each once. Unlike HintsOf, it includes the hints of diagnostics in a
// list that another error wraps.
func AllHints(err error) (hints []string) {
	for _, part := range Parts(err) {
		for _, hint := range HintsOf(part) {
			if !slices.Contains(hints, hint) {
				hints = append(hints, hint)
			}
		}
	}
	return hints
}

func isList(err error) bool {
	_, is := err.(List) //nolint:errorlint // checks the error itself
	return is
}
