package agent_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// TestProgramsOfAReleaseCannotShowSecrets has a procedure that prints its configuration, which has a secret, in several
// encodings, a URL with a password, and escape sequences, and then fails.
func TestProgramsOfAReleaseCannotShowSecrets(t *testing.T) {
	l := newHookLab(t)
	l.executables("1", nil)
	l.expect(exit.OK)
	const secret = "correct-horse battery/staple"
	l.Redactor = &redact.Redactor{}
	l.Redactor.Add(secret)
	l.executables("2", artifacttest.Files{".salt/install": `#!/bin/sh
echo "configured with ` + secret + `"
echo "basic dXNlcjpjb3JyZWN0LWhvcnNlIGJhdHRlcnkvc3RhcGxl"
echo "GET /?password=correct-horse%20battery%2Fstaple"
echo "cloning https://deploy:Pl/ain@git.example.com/x.git?sig=abcdef"
printf 'title \033]52;c;aGVsbG8=\007 and \033[2J\n'
exit 3
`})
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack {
		t.Fatalf("exit code %d, %v", exit.Code(err), err)
	}
	book, readErr := os.ReadFile(l.Layout.Ledger())
	if readErr != nil {
		t.Fatal(readErr)
	}
	report, _ := json.Marshal(r)
	for what, text := range map[string]string{"the report": string(report), "the error": err.Error(),
		"the ledger": string(book)} {
		for _, private := range []string{"battery", "b3JzZSBiYXR0ZXJ5", "%2Fstaple", "ain@git", "abcdef", "\x1b", `\u001b`} {
			if strings.Contains(text, private) {
				t.Errorf("%s shows %q: %s", what, private, text)
			}
		}
	}
	output := r.Hooks["install"][0].Output
	for _, kept := range []string{"configured with <secret>",
		"cloning https://<secret>@git.example.com/x.git?sig=<secret>", `title \x1b]52`} {
		if !strings.Contains(output, kept) {
			t.Errorf("the output %q lacks %q", output, kept)
		}
	}
}
