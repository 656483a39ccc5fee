package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// TestErrorsHideSecrets checks that no error contains a decrypted value, and that errors keep their type, their
// positions and their hints.
func TestErrorsHideSecrets(t *testing.T) {
	s := &Session{Settings: Settings{Redactor: &redact.Redactor{}}}
	s.Redactor.Add("hunter22")
	list := diag.List{{Pos: diag.Pos{File: "a.sls", Line: 3}, Message: "no hunter22", Hint: "mend hunter22",
		Excerpt: "> 3 | hunter22"}}
	for _, err := range []error{list, &PillarError{Problems: list}, fmt.Errorf("reading: %w", list),
		diag.Internal.Hint(errors.New("is hunter22"), "not hunter22")} {
		shown := s.redactError(err)
		text := shown.Error() + diag.HintOf(shown)
		for _, d := range problemsIn(shown) {
			text += d.Text()
			if d.Pos.Line != 3 {
				t.Errorf("%v has lost its position", err)
			}
		}
		if strings.Contains(text, "hunter22") || !strings.Contains(text, redact.Mark) {
			t.Errorf("%T is shown as %s", err, text)
		}
	}
	var broken *PillarError
	if !errors.As(s.redactError(&PillarError{Problems: list}), &broken) {
		t.Error("the redacted error of a pillar is no PillarError")
	}
	if plain := errors.New("nothing to hide"); s.redactError(plain) != plain {
		t.Error("an error without secrets was changed")
	}
}

func problemsIn(err error) diag.List {
	var list diag.List
	errors.As(err, &list)
	return list
}
