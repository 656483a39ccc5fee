// Package diag reports problems in files of users: what is wrong, where, and what to do.
//
// A problem in a user's file is a Diagnostic: a position that an editor can jump to, a message, a hint, and the lines
// around the place. Problems are collected in a List and shown together, so that a user can correct all of them at
// once. Errors that belong to no file have a hint by WithHint, and the command line prints both kinds in the same form.
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// Pos is a position in a user's file. Line and Col count from 1; 0 means unknown.
type Pos struct {
	File string
	Line int
	Col  int
}

// String formats the position as file:line:col and leaves out what is unknown.
func (p Pos) String() string {
	s := p.File
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
		if p.Col > 0 {
			s += ":" + strconv.Itoa(p.Col)
		}
	}
	return s
}

// IsZero reports whether the position is unknown.
func (p Pos) IsZero() bool { return p == Pos{} }

// Diagnostic is one problem at one position of a user's file.
type Diagnostic struct {
	Pos     Pos
	Message string // the mistake and what was expected, one line
	Hint    string // what to do next, one line that ends with a code; may be empty
	Excerpt string // the text around the place, from Excerpt; may be empty
	// Cause is the error of the host (EIO, EMFILE, ENOSPC ..., or a HostFault) if that is the problem and not a mistake
	// in the file; nil otherwise. Errors.Is finds it in a List, too.
	Cause error `json:"-"`
	// Object is the error of reading or using a file of the host, if that is the problem, for the decision who is at
	// fault for it; nil otherwise. It may hold secrets, and errors.As does not find it.
	Object error `json:"-"`
	// HostOnly says that only the host which compiles the file can tell whether this is a mistake: the file depends on
	// keys, programs or facts of that host.
	HostOnly bool `json:"-"`
}

// At returns a diagnostic with a formatted message. If an error among args was caused by an error of the host, that is
// its Cause.
func At(p Pos, format string, args ...any) *Diagnostic {
	d := &Diagnostic{Pos: p, Message: fmt.Sprintf(format, args...)}
	for _, a := range args {
		if err, ok := a.(error); ok {
			d.follow(err)
		}
	}
	return d
}

// follow copies the cause and the mark HostOnly of err, unless the diagnostic has them already.
func (d *Diagnostic) follow(err error) {
	if d.Cause == nil {
		d.Cause = CauseOf(err)
	}
	if d.Object == nil {
		d.Object = ObjectOf(err)
	}
	d.HostOnly = d.HostOnly || IsHostOnly(err)
}

// ObjectOf returns err if it says why a file of the host could not be read or used, the Object of a diagnostic in its
// chain, or nil. Errors of such files that are no *fs.PathError have the method AboutFile.
func ObjectOf(err error) error {
	var at *fs.PathError
	var about interface{ AboutFile() }
	var one *Diagnostic
	switch {
	case errors.As(err, &at), errors.As(err, &about):
		return err
	case errors.As(err, &one):
		return one.Object
	}
	return nil
}

// HostFault is an error of the host for which no release is at fault, and that has no number. Its text has no secrets.
type HostFault interface {
	error
	HostFault()
}

// CauseOf returns the HostFault or the error number in the chain of err, or nil. It ignores ENOENT, which is no failure
// of the host.
func CauseOf(err error) error {
	if fault, ok := errors.AsType[HostFault](err); ok {
		return fault
	}
	var number syscall.Errno
	if errors.As(err, &number) && number != syscall.ENOENT {
		return number
	}
	return nil
}

// Unwrap returns the Cause.
func (d *Diagnostic) Unwrap() error { return d.Cause }

// WithHint sets a hint about the topic and returns the diagnostic.
func (d *Diagnostic) WithHint(t Topic, hint string) *Diagnostic { return d.KeepHint(t.Coded(hint)) }

// KeepHint sets the hint of another error, which ends with a code, and returns the diagnostic.
func (d *Diagnostic) KeepHint(hint string) *Diagnostic {
	d.Hint = hint
	return d
}

// Error returns the one-line form, file:line:col: message.
func (d *Diagnostic) Error() string {
	if d.Pos.IsZero() {
		return d.Message
	}
	return d.Pos.String() + ": " + d.Message
}

// Text returns the full form: the line, the excerpt and the hint.
func (d *Diagnostic) Text() string {
	s := d.Error()
	if d.Excerpt != "" {
		s += "\n" + strings.TrimRight(d.Excerpt, "\n")
	}
	if d.Hint != "" {
		s += "\n" + HintLines(d.Hint)
	}
	return s
}

// List is a list of problems. It is an error if it is not empty.
type List []*Diagnostic

// Add appends a diagnostic with a formatted message and returns it for a hint.
func (l *List) Add(p Pos, format string, args ...any) *Diagnostic {
	d := At(p, format, args...)
	*l = append(*l, d)
	return d
}

// AddError appends the diagnostics inside err, or else err itself with the position p. Joined errors are added one by
// one.
func (l *List) AddError(p Pos, err error) {
	for _, part := range Parts(err) {
		var one *Diagnostic
		if !errors.As(part, &one) {
			one = &Diagnostic{Pos: p, Message: part.Error(), Hint: strings.Join(HintsOf(part), "\n")}
		} else { // the error that wraps the diagnostic may have a cause or a mark
			copied := *one
			one = &copied
		}
		one.follow(part)
		*l = append(*l, one)
	}
}

// Err sorts the list by position and drops repetitions. It returns nil if the list is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	sorted := slices.Clone(l)
	structsort.Func(sorted, func(a, b *Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return slices.CompactFunc(sorted, func(a, b *Diagnostic) bool { return a.Pos == b.Pos && a.Message == b.Message })
}

// Unwrap returns the causes of the problems.
func (l List) Unwrap() []error {
	var causes []error
	for _, d := range l {
		if d.Cause != nil {
			causes = append(causes, d.Cause)
		}
	}
	return causes
}

// Error joins the one-line forms.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}
