package fleet

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Said is what hosts reported of a failure. A stolen host chooses these texts, so they are shown as its words and never
// as those of the program.
type Said struct {
	Hosts []string `json:"hosts"`
	Error string   `json:"error"`
	Hint  string   `json:"hint,omitempty"` // what to do, as these hosts reported it
}

// Quoted returns a text that a host chose: in one line, with quotation marks that it cannot end.
func Quoted(text string) string {
	text = strings.Join(linesOf(text), "; ")
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// Lines returns the lines that explain an entry: the reason, or what hosts said, quoted with their names.
func (a Attention) Lines() (lines []string) {
	if len(a.Said) == 0 {
		return BriefLines(a.Why)
	}
	for _, s := range a.Said[:min(len(a.Said), mostErrors)] {
		words := []string{s.Error}
		if len(a.Said) == 1 {
			words = BriefLines(s.Error)
		}
		lines = append(lines, s.lines(words)...)
	}
	if more := len(a.Said) - mostErrors; more > 0 {
		lines = append(lines, "and "+diag.Count(more, "more error"))
	}
	return lines
}

// lines returns the lines of an error and its hint.
func (s Said) lines(words []string) (lines []string) {
	says, advises := "says", "advises"
	if len(s.Hosts) > 1 {
		says, advises = "say", "advise"
	}
	add := func(verb, text string) {
		lines = append(lines, fmt.Sprintf("%s %s: %s", strings.Join(s.Hosts, ", "), verb, Quoted(Brief(text))))
	}
	for _, text := range words {
		add(says, text)
	}
	if s.Hint != "" {
		add(advises, s.Hint)
	}
	return lines
}

// Advice returns what to do about an entry, without what hosts advise.
func (a Attention) Advice() string {
	if len(a.Said) > 0 {
		return a.advice
	}
	return a.Hint
}
