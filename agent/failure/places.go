package failure

import (
	"errors"
	"regexp"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Places maps the directory under which a run read a release, such as /srv/service/next, to the one that has these
// files after the run. A rollback points the links at other files, and moves the failed release.
type Places map[string]string

// Text replaces the directories in positions, FILE:LINE or FILE:, also in the form of a traceback of Python. It keeps
// other paths: states may name the links as well.
func (p Places) Text(text string) string {
	for from, to := range p {
		if strings.Contains(text, from+"/") {
			text = regexp.MustCompile(regexp.QuoteMeta(from)+`(/[^\s:"']+(?::[ \d]|", line \d))`).ReplaceAllString(text, to+"$1")
		}
	}
	return text
}

// Error replaces the directories in an error, and in the diagnostics that errors.As finds in it.
func (p Places) Error(err error) error {
	text := p.Text(err.Error())
	if text == err.Error() {
		return err
	}
	return &moved{text: text, list: p.list(err), err: err}
}

// list returns a copy of the diagnostics in an error with replaced directories; empty if it has none.
func (p Places) list(err error) diag.List {
	var list diag.List
	var one *diag.Diagnostic
	if !errors.As(err, &list) && errors.As(err, &one) {
		list = diag.List{one}
	}
	copied := make(diag.List, len(list))
	for i, d := range list {
		there := *d
		there.Message, there.Hint = p.Text(d.Message), p.Text(d.Hint)
		if d.Pos.File != "" {
			there.Pos.File = strings.TrimSuffix(p.Text(d.Pos.File+": "), ": ")
		}
		copied[i] = &there
	}
	return copied
}

// moved is an error with replaced directories.
type moved struct {
	text string
	list diag.List
	err  error
}

func (m *moved) Error() string { return m.text }

// Unwrap returns the diagnostics with their new positions before the error with the old ones.
func (m *moved) Unwrap() []error {
	if len(m.list) == 0 {
		return []error{m.err}
	}
	return []error{m.list, m.err}
}
