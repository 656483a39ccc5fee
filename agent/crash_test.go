package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// TestCrashReportHasJournalLines deploys a release that crashes at its start: the error, the report and the failure in
// the ledger have the last lines of the unit's journal, without the secrets of the agent's configuration.
func TestCrashReportHasJournalLines(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	const secret = "correct-horse-battery"
	l.Redactor = &redact.Redactor{}
	l.Redactor.Add(secret)
	for i := range 30 {
		u.all["app.service"].logs = append(u.all["app.service"].logs, fmt.Sprintf("app: line %d", i))
	}
	u.all["app.service"].logs = append(u.all["app.service"].logs, "app: cannot log in to the database with "+secret,
		"app: \x1b]52;c;\x07giving up")
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
		if !strings.Contains(text, "app: cannot log in to the database with <secret>") ||
			!strings.Contains(text, "giving up") {
			t.Errorf("%s lacks the last lines of the journal: %s", what, text)
		}
		if strings.Contains(text, secret) || strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "line 21") ||
			!strings.Contains(text, "line 22") {
			t.Errorf("%s has a secret, a control character or too many lines: %q", what, text)
		}
	}
}

// TestProgramThatExitsAfterTheLinkMovesShowsItsLastLogLines has the init system start the program again, whose log
// lines must not appear.
func TestProgramThatExitsAfterTheLinkMovesShowsItsLastLogLines(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.ProbeAnyRoot = true
	s := u.all["app.service"]
	s.logs = []string{"systemd: Started app.service."}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if strings.Contains(s.runs, "/2-") && s.dying == nil {
			s.dying = []string{"app: the table users is gone"}
			s.Restarts, s.MainPID, s.BeganAt = 1, s.MainPID+100, time.Now().Add(time.Hour) // the time of the fake clock differs
		}
	}))
	defer server.Close()
	l.app("2",
		artifacttest.Files{recipe.Name: "health:\n  interval: 1ms\n  retries: 2\n  probes:\n    - http: " + server.URL +
			"\n"})
	_, err := l.deploy()
	if exit.Code(err) != exit.RolledBack ||
		!strings.Contains(err.Error(), "logged last:\n  app: the table users is gone") {
		t.Errorf("exit code %d, %v", exit.Code(err), err)
	}
}
