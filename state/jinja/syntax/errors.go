package syntax

import "fmt"

// Error is a syntax error of a template.
type Error struct {
	Kind    string // Jinja2's class: TemplateSyntaxError or TemplateAssertionError
	Message string
	Hint    string
	Line    int // counted from 1
	Offset  int // in the normalized text
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

func fail(line, at int, format string, args ...any) *Error {
	return &Error{Kind: "TemplateSyntaxError", Message: fmt.Sprintf(format, args...), Line: line, Offset: at}
}

func (e *Error) withHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}
