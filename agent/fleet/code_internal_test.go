package fleet

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestEachKindOfAttentionHasACode checks that the hint of each kind ends with the code of a topic, and that what a host
// advises stays as it is.
func TestEachKindOfAttentionHasACode(t *testing.T) {
	for _, what := range ranks() {
		all := []Attention{{What: what, Hint: "look at it"}, {What: what, Hint: "look [C070]"},
			{What: what, Hint: "own words", Said: []Said{{Hint: "own words"}}, advice: "ask the host"}}
		Code(all)
		code, known := diag.CodesOf(all[0].Hint), topicOf(what)
		if code != known.String() || known.Title() == "" || all[1].Hint != "look [C070]" || all[2].Hint != "own words" ||
			!strings.HasSuffix(all[2].Advice(), "["+code+"]") {
			t.Errorf("%s: the hints are %q, %q, %q and %q", what, all[0].Hint, all[1].Hint, all[2].Hint, all[2].Advice())
		}
	}
}
