package module

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

//go:embed elsewhere.txt
var elsewhere string

// Unknown says that there is no such state function, why, and what to do instead: it is a slip of the
// finger, one of Salt's that is left to Salt, or nobody's.
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
		return diag.WithHint(fmt.Errorf("%w: %s", err, reason), "%s", instead)
	case meant != "":
		return diag.WithHint(err, "did you mean %q?", meant)
	case len(same) > 0:
		slices.Sort(same)
		return diag.WithHint(fmt.Errorf("%w: %s has no %s", err, state, fun),
			"of %s there are %s", state, strings.Join(same, ", "))
	}
	return diag.WithHint(err, "docs/states.md lists those there are; `engine: salt-call` has all of Salt's")
}

// nearest is the function that was probably meant: one of a state with much the same name, since that of the function, such as
// present, is the same in many.
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

// reasonFor is why states of Salt are not here, and what to do instead; "" for any others.
func reasonFor(state string) (reason, instead string) {
	for line := range strings.Lines(elsewhere) {
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
