package redact

import (
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// ours matches the escape sequences of this project's own output: four colours, and their end.
var ours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[(?:0|(?:0;)?3[1236])m") })

// Screen returns a text as Controls does, with the colours of this project's own output kept.
func Screen(text string) string {
	var out strings.Builder
	done := 0
	for _, at := range ours().FindAllStringIndex(text, -1) {
		out.WriteString(Controls(text[done:at[0]]))
		out.WriteString(text[at[0]:at[1]])
		done = at[1]
	}
	out.WriteString(Controls(text[done:]))
	return out.String()
}

// Writer passes data on as Controls shows it: a terminal gets no escape sequence from a name, an ID, an error or a
// program's output, whichever code printed it. Its owner must call Flush at the end. It is safe for concurrent use.
type Writer struct {
	to      io.Writer
	mu      sync.Mutex
	colours bool
	held    string // the start of a sequence that continues in the next write
	failed  error  // first error of the writer below
}

// NewWriter returns a Writer to w. If colours is true, the Writer keeps the colours of this project's own output.
func NewWriter(w io.Writer, colours bool) *Writer { return &Writer{to: w, colours: colours} }

// Colours keeps the colours of this project's own output from now on.
func (w *Writer) Colours() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.colours = true
}

// Err returns the first error of a write to the writer below. Callers that print need not check each of their writes.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// Unwrap returns the writer below.
func (w *Writer) Unwrap() io.Writer { return w.to }

// Write is part of io.Writer. A character that was written in part is held until its rest is written.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.held + string(p)
	whole := len(text) - unfinished(text)
	w.held = text[whole:]
	if err := w.pass(text[:whole]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the bytes that are held.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = ""
	return w.pass(held)
}

func (w *Writer) pass(text string) error {
	if text == "" {
		return nil
	}
	shown := Controls
	if w.colours {
		shown = Screen
	}
	_, err := io.WriteString(w.to, shown(text))
	if w.failed == nil {
		w.failed = err
	}
	return err
}

// longest is the length of the longest sequence of ours.
const longest = len("\x1b[0;31m")

// unfinished returns the number of bytes at the end of a text that may be the start of a character, a line end or a
// colour.
func unfinished(text string) int {
	if strings.HasSuffix(text, "\r") {
		return 1
	}
	end := text[max(0, len(text)-longest):]
	if at := strings.LastIndexByte(end, 0x1b); at >= 0 && !strings.ContainsRune(end[at:], 'm') {
		return len(end) - at
	}
	for n := 1; n < min(utf8.UTFMax, len(text)+1); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// JSON returns a JSON document in which the characters that Controls replaces, which occur only in strings, are escaped
// as in JSON: a reader gets the same strings.
func JSON(document string) string {
	if strings.IndexFunc(document, unsafe) < 0 {
		return document
	}
	var out strings.Builder
	for _, c := range document {
		if c != '\r' && unsafe(c) {
			out.WriteString(unicodeEscape(c))
			continue
		}
		out.WriteRune(c)
	}
	return out.String()
}
