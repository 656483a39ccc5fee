package jinja

import (
	"sort"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Output is the output of a template.
type Output struct {
	Text string

	spans []span
	lines lines
}

// span records the origin of the output that starts at the offset out. Literal text was copied from the template; other
// text is the value of an expression at that position.
type span struct {
	template *Template
	out      int
	at       int
	literal  bool
}

// Origin maps a position in the text, counted from 1, to the template: to the exact position for literal text, and to
// the expression for printed values.
func (o *Output) Origin(line, col int) diag.Pos {
	at := o.lines.offset(o.Text, line, col)
	i := sort.Search(len(o.spans), func(i int) bool { return o.spans[i].out > at }) - 1
	if i < 0 {
		return diag.Pos{}
	}
	s := o.spans[i]
	if s.literal {
		return s.template.pos(s.at + at - s.out)
	}
	return s.template.pos(s.at)
}

// writer collects output. It records spans unless spans is nil.
type writer struct {
	buf   []byte
	spans []span
	limit int
}

func (w *writer) mark(t *Template, at int, literal bool) {
	if w.spans != nil {
		w.spans = append(w.spans, span{t, len(w.buf), at, literal})
	}
}

func (w *writer) write(text string) error {
	w.buf = append(w.buf, text...)
	return w.full()
}

func (w *writer) full() error {
	if len(w.buf) > w.limit {
		return &limitError{
			"the template prints more than " + itoa(w.limit>>20) + " MiB",
			"look for a loop that prints too much",
		}
	}
	return nil
}

// captured runs body with a writer of its own, and returns the output.
func (f *frame) captured(body func() error) (string, error) {
	outer := f.out
	f.out = &writer{limit: f.r.limits.OutputBytes}
	err := body()
	text := string(f.out.buf)
	f.out = outer
	if err == nil {
		err = f.r.charge(len(text))
	}
	return text, err
}
