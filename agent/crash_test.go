package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// TestCrashShowsWhatTheProgramLogged has a release crash at start: the error, the report and what failed in the ledger
// have the last lines of the unit's journal, without the secrets that the agent knows.
func TestCrashShowsWhatTheProgramLogged(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	const secret = "correct-horse-battery"
	l.Redactor = &redact.Redactor{}
	l.Redactor.Add(secret)
	for i := range 30 {
		u.all["app.service"].logs = append(u.all["app.service"].logs, fmt.Sprintf("app: line %d", i))
	}
	u.all["app.service"].logs = append(u.all["app.service"].logs, "app: cannot log in to the database with "+secret, "app: \x1b]52;c;\x07giving up")
	l.app("2.crashes")
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack {
		t.Fatalf("exit code %d, %v", exit.Code(err), err)
	}
	why, err2 := l.Why()
	if err2 != nil {
		t.Fatal(err2)
	}
	var probes []string
	for _, probe := range r.Health {
		probes = append(probes, probe.Journal...)
	}
	for what, text := range map[string]string{
		"the error": err.Error(), "the report": r.Error, "the probes of the report": strings.Join(probes, "\n"),
		"why": why.Failed,
	} {
		if !strings.Contains(text, "app: cannot log in to the database with <secret>") || !strings.Contains(text, "giving up") {
			t.Errorf("%s has no last lines of the journal: %s", what, text)
		}
		if strings.Contains(text, secret) || strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "line 21") || !strings.Contains(text, "line 22") {
			t.Errorf("%s has a secret, a control character or too many lines: %q", what, text)
		}
	}
}
