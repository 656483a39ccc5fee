package diag_test

import (
	"errors"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// A hint ends with one code: that of the cause whose hint it passes on, or its own.
func TestHintsEndWithACode(t *testing.T) {
	full := diag.Disk.Hint(errors.New("no room"), "free %d MiB", 3)
	for name, c := range map[string]struct{ hint, want, codes string }{
		"of an error":     {diag.HintOf(full), "free 3 MiB [C070]", "C070"},
		"of a diagnostic": {diag.At(diag.Pos{}, "x").WithHint(diag.Recipe, "keep one").Hint, "keep one [C033]", "C033"},
		"passed on":       {diag.Agent.Coded(diag.HintOf(full)), "free 3 MiB [C070]", "C070"},
		"extended":        {diag.Agent.Coded(diag.HintOf(full) + "; journalctl"), "free 3 MiB; journalctl [C066]", "C066"},
		"joined": {diag.Rollback.Coded(diag.HintOf(full) + "\nlook\nlook"), "free 3 MiB [C070]\nlook [C057]\nlook [C057]",
			"C070 C057"},
		"empty":                  {diag.Disk.Coded(""), "", ""},
		"with something like it": {diag.Disk.Coded("see [C12]; [C0700]"), "see [C12]; [C0700] [C070]", "C070"},
	} {
		if c.hint != c.want || diag.CodesOf(c.hint) != c.codes {
			t.Errorf("%s: %q with %q, want %q with %q", name, c.hint, diag.CodesOf(c.hint), c.want, c.codes)
		}
	}
	if diag.Disk.Hint(nil, "nothing") != nil || diag.KeepHint(nil, "nothing") != nil {
		t.Error("no error got a hint")
	}
}

func TestTopicsAreFoundByTheirCodes(t *testing.T) {
	for _, code := range []string{"C070", "c070"} {
		if got, ok := diag.TopicOf(code); !ok || got != diag.Disk {
			t.Errorf("%s is %v, %v", code, got, ok)
		}
	}
	for _, code := range []string{"", "70", "C999", "C70", "deploy"} {
		if got, ok := diag.TopicOf(code); ok {
			t.Errorf("%q is %v", code, got)
		}
	}
	for _, topic := range diag.Topics() {
		if got, ok := diag.TopicOf(topic.String()); !ok || got != topic || topic.Title() == "" || topic.Cure() == "" {
			t.Errorf("%s is %v, with the title %q and the cure %q", topic, got, topic.Title(), topic.Cure())
		}
	}
}
