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
			t.Errorf("nearest to %s is %q, want %q", word, got, want)
		}
	}
}

func TestSuggestionsForAbbreviations(t *testing.T) {
	if got := diag.Nearest("file.mangd", []string{"file.mknod", "file.managed"}); got != "file.managed" {
		t.Errorf("the suggestion for file.mangd is %q", got)
	}
	if got := diag.Nearest("convrege", []string{"converge", "converge.strict_arguments"}); got != "converge" {
		t.Errorf("the suggestion for convrege is %q", got)
	}
	if got := diag.Nearest("nope", []string{"top"}); got != "" {
		t.Errorf("the suggestion for nope is %q", got)
	}
}
