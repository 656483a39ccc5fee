package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// collector is a sink that keeps what it gets before the end of the run.
type collector struct{ strings.Builder }

func (c *collector) Begin(*report.Report)          {}
func (c *collector) Stage(name, detail string)     { fmt.Fprintln(c, name, detail) }
func (c *collector) Fetching(string, int64, int64) {}
func (c *collector) Step(s report.Step)            { fmt.Fprintf(c, "%+v\n", s) }
func (c *collector) Hook(at string, r hook.Result) { fmt.Fprintf(c, "%s %+v\n", at, r) }
func (c *collector) Note(text string)              { fmt.Fprintln(c, text) }
func (c *collector) End(*report.Report)            {}

// Sinks print while the run goes on, before Complete redacts the whole report.
func TestSinksAndReportGetNoSecret(t *testing.T) {
	const secret = "correct-horse-battery"
	secrets := &redact.Redactor{}
	secrets.Add(secret)
	var r report.Report
	sink := &collector{}
	b := report.Record(&r, secrets, sink)
	_ = b.Stage("fetch", "from "+secret, func() error { return errors.New("refused: " + secret) })
	b.Note("a note about %s", secret)
	b.Hooks("pre-release", []hook.Result{{Name: "10-" + secret, Output: secret, Error: "exit: " + secret}})
	b.Unit(service.Result{Unit: "a.service", Action: "left", Why: "it has " + secret, Error: "journal: " + secret})
	b.Probes([]health.Result{{Probe: "http://x/?k=" + secret, Error: secret, Test: secret, Answered: secret}})
	b.Output("the engine printed " + secret)
	if text := sink.String(); strings.Contains(text, secret) || strings.Count(text, "\n") != 5 {
		t.Errorf("the sink got:\n%s", text)
	}
	data, err := json.Marshal(r)
	if err != nil || strings.Contains(string(data), secret) {
		t.Errorf("the report is %s, %v", data, err)
	}
}
