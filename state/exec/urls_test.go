package exec

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestResultsShowNoPasswordsOfURLs checks that a result shows no password of a URL, in any notation, even if no pillar
// has a secret.
func TestResultsShowNoPasswordsOfURLs(t *testing.T) {
	const url = "https://u:Pl/ain@git.example.com/x.git?sig=abcdefgh"
	r := &Result{
		Step:    &compile.Step{Chunk: value.NewMap("__id__", "clone "+url, "name", url, "state", "git", "fun", "latest")},
		Comment: "cloning " + url, Hint: "see " + url, Warnings: []string{url}, Changes: value.NewMap("new", url),
		Predicted: value.NewMap("list", value.NewList(url)),
	}
	(&Runner{}).redact(r)
	text := strings.Join([]string{r.ID(), r.Name(), r.ShownTag(), r.Comment, r.Hint, r.Warnings[0], value.Str(r.Changes),
		value.Str(r.Predicted), value.Str(r.Map())}, "\n")
	if strings.Contains(text, "ain@") || strings.Contains(text, "abcdefgh") {
		t.Errorf("it shows %s", text)
	}
	if r.Step.Name() != url {
		t.Error("the step itself was changed")
	}
}
