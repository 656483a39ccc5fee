package diag_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"content": "contents", "contextt": "context", "sourc": "source", "suorce": "source",
		"xyz": "", "source": "",
	} {
		if got := diag.Nearest(word, []string{"context", "contents", "source"}); got != want {
			t.Errorf("nearest to %s is %q, and %q is meant", word, got, want)
		}
	}
}
