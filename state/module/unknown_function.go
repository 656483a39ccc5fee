package module

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

//go:embed unsupported_states.txt
var unsupported string

// Unknown returns the error for a state function that does not exist, with a hint: a similar name, or an alternative to
// a function of Salt that the agent does not have.
func Unknown(function string, known []string) error {
	state, fun, _ := strings.Cut(function, ".")
	var same []string
	for _, name := range known {
		if rest, ok := strings.CutPrefix(name, state+"."); ok {
			same = append(same, rest)
		}
	}
	err := errors.New("no such state function")
	reason, instead := reasonFor(state)
	switch meant := nearest(function, known); {
	case reason != "" && len(same) == 0:
		return diag.Function.Hint(fmt.Errorf("%w: %s", err, reason), "%s", instead)
	case meant != "":
		return diag.Function.Hint(err, "did you mean %q?", meant)
	case len(same) > 0:
		slices.Sort(same)
		return diag.Function.Hint(fmt.Errorf("%w: %s has no %s", err, state, fun),
			"of %s there are %s", state, strings.Join(same, ", "))
	}
	return diag.Function.Hint(err, "docs/states.md lists the states; `engine: salt-call` has all states of Salt")
}

// nearest returns the function that was probably meant. It considers only states with a similar name, since
// many have functions such as present.
func nearest(function string, known []string) string {
	state, _, _ := strings.Cut(function, ".")
	var like []string
	for _, name := range known {
		other, _, _ := strings.Cut(name, ".")
		if other == state || diag.Nearest(state, []string{other}) != "" {
			like = append(like, name)
		}
	}
	return diag.Nearest(function, like)
}

// reasonFor returns why the agent does not have a state of Salt and the alternative; "" for other states.
func reasonFor(state string) (reason, instead string) {
	for line := range strings.Lines(unsupported) {
		if heading, ok := strings.CutPrefix(line, ":"); ok {
			reason, instead, _ = strings.Cut(strings.TrimSpace(heading), "|")
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, word := range strings.Fields(line) {
			if prefix, ok := strings.CutSuffix(word, "*"); word == state || ok && strings.HasPrefix(state, prefix) {
				return reason, instead
			}
		}
	}
	return "", ""
}
