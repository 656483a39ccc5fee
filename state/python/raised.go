package python

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// Raised is an exception that a module raised.
type Raised struct {
	Class, Message string
	Place          string   // where it was raised
	Trace          []string // the last lines of the traceback: where it was raised, and from where that was called
	Missing        bool     // there is no such function or module
	host           error    // the error of the host that it, or an exception that led to it, reports; nil for none
}

func newRaised(v any) error {
	m, ok := v.(*value.Map)
	if !ok {
		return fmt.Errorf("python3 sent an exception that is a %s", value.TypeName(v))
	}
	r := &Raised{Class: value.Str(m.Value("class")), Message: value.Str(m.Value("message")),
		Missing: value.Truth(m.Value("missing"))}
	r.Place, _ = m.Value("place").(string)
	r.host = printedByHost(r.Class + ": " + r.Message + "\n" + value.Str(m.Value("before")))
	if trace, ok := m.Value("trace").(*value.List); ok {
		for _, line := range trace.Items {
			r.Trace = append(r.Trace, strings.TrimRight(value.Str(line), "\n"))
		}
	}
	return r
}

// Unwrap returns the error of the host that the exception reports, or nil.
func (r *Raised) Unwrap() error { return r.host }

// Error returns the exception as Python prints it, with its place, and below it the lines of the traceback.
func (r *Raised) Error() string {
	if r.Missing {
		return r.Message
	}
	text := r.Class
	if r.Message != "" {
		text += ": " + r.Message
	}
	if r.Place != "" {
		text += " (" + r.Place + ")"
	}
	return strings.Join(append([]string{text}, r.Trace...), "\n")
}
