package syntax

import "fmt"

// Error says that a template is not well formed.
type Error struct {
	Kind    string // Jinja2's class: TemplateSyntaxError or TemplateAssertionError
	Message string
	Hint    string
	Line    int // counted from 1
	Offset  int // in the text that Parse read
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

func fail(line, at int, format string, args ...any) *Error {
	return &Error{Kind: "TemplateSyntaxError", Message: fmt.Sprintf(format, args...), Line: line, Offset: at}
}

func (e *Error) withHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}
