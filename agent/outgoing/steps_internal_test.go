package outgoing

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestProgramOutputIsNotUploaded has the output of commands, hooks, units, probes and engines in each field of a report
// to which a run copies it.
func TestProgramOutputIsNotUploaded(t *testing.T) {
	const comment = `command "deploy" ended with code 3: swordfish refused`
	r := whole(&report.Report{
		ID: "1", Error: "1 of 4 states failed: cmd.run deploy (deploy in app): " + comment,
		Hint: "look at web.service: swordfish in the journal",
		Steps: []report.Step{
			{ID: "deploy", Function: "cmd.run", Name: "deploy", Result: report.StepFailed, Comment: comment,
				Changes: value.NewMap("pid", 3, "retcode", 3, "stdout", "swordfish", "stderr", "a\nswordfish")},
			{ID: "ask", Function: "module.run", Name: "ask", Result: report.StepOK,
				Changes: value.NewMap("http.query", value.NewMap("body", "swordfish"))},
			{ID: "cron", Function: "cron.present", Name: "backup -p swordfish", Result: report.StepOK,
				Changes: value.NewMap("root", "swordfish")},
			{ID: "nginx", Function: "pkg.installed", Name: "nginx", Result: report.StepOK,
				Changes: value.NewMap("nginx", value.NewMap("old", "", "new", "1.22"))},
		},
		Stages: []report.Stage{{Name: "converge", Error: comment}},
		Hooks:  map[string][]hook.Result{"pre-release": {{Name: "10-check", Output: "swordfish", Error: "exit status 3"}}},
		Units:  []service.Result{{Unit: "web.service", Error: "web.service: swordfish in the journal"}},
		Health: []health.Result{{Probe: "script check.sh", Error: "exit status 1: swordfish"},
			{Probe: "http http://127.0.0.1/", Error: "status 500"},
			{Probe: "http http://127.0.0.1/a",
				Error: `net/http: HTTP/1.x transport connection broken: malformed HTTP response "swordfish"`}},
		Notes:  []string{"it said: " + comment},
		Output: "swordfish",
	})
	r.Report.Steps[2].Name = "backup"
	data, err := json.Marshal(r.Copy())
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if strings.Contains(text, "swordfish") {
		t.Errorf("the upload has %s", text)
	}
	for _, kept := range []string{`"retcode":3`, `"new":"1.22"`, "status 500", "exit status 3",
		"deploy (deploy in app): its output is not shown outside of the host", "cmd.run deploy (deploy in app)"} {
		if !strings.Contains(text, kept) {
			t.Errorf("%q is not in %s", kept, text)
		}
	}
	if data, _ := json.Marshal(r.Report); strings.Count(string(data), "swordfish") < 10 {
		t.Errorf("the report on the host lacks content: %s", data)
	}
}

// TestQuotedProgramOutputIsNotUploaded has failures of states with quoted output.
func TestQuotedProgramOutputIsNotUploaded(t *testing.T) {
	printed := &site.FailedOutput{}
	printed.Note(host.Output{Code: 100, Stderr: "E: https://mirror refused swordfish\nno\n"})
	steps := []report.Step{
		{ID: "nginx", Function: "pkg.installed", Name: "nginx", Result: report.StepFailed,
			Comment: "apt-get ended with code 100: E: https://mirror refused swordfish"},
		{ID: "app", Function: "service.running", Name: "app", Result: report.StepFailed,
			Comment: "service ended with code 1: no"},
		{ID: "x", Function: "git.latest", Name: "x", Result: report.StepFailed,
			Comment: "there is no program git on this host"},
	}
	rep := &report.Report{ID: "1", Steps: steps, Error: steps[0].Comment}
	r := whole(rep)
	r.Printed = printed
	out := r.Copy()
	for i, want := range []string{"its output is " + notShown,
		"its output is " + notShown, steps[2].Comment} {
		if out.Steps[i].Comment != want {
			t.Errorf("%s: %q, want %q", steps[i].Function, out.Steps[i].Comment, want)
		}
	}
	if strings.Contains(out.Error, "swordfish") {
		t.Errorf("the error is %q", out.Error)
	}
}

// TestQuarantineReasonsAreNotUploaded has the output of a program in the reasons that later runs repeat.
func TestQuarantineReasonsAreNotUploaded(t *testing.T) {
	const comment = "`deploy` ended with code 1: k=swordfish\nmore of it"
	const first = "`deploy` ended with code 1: k=swordfish"
	release := func(v string) artifact.Release {
		return artifact.Release{Project: "myapp", Version: v}
	}
	one, two := release("1"), release("2")
	rep := &report.Report{
		ID: "9", Error: "myapp 1 is quarantined (cmd.run of a failed: k=swordfish-1) and there is nothing else to run",
		Steps: []report.Step{{ID: "deploy", Function: "cmd.run", Name: "deploy", Result: report.StepFailed,
			Comment: comment}},
		Quarantined: []report.Quarantined{
			{Release: one, Reason: "cmd.run of a failed: k=swordfish-1", Run: "8"},
			{Release: two, Reason: "cmd.run of deploy failed: " + first, Run: "9"},
			{Release: release("3"), Reason: ledger.ByHand, Run: "7"},
		},
		Notes: []string{"myapp 1 is quarantined since run 8: cmd.run of a failed: k=swordfish-1",
			"myapp 2 is retried: it failed because of the host in run 6: apt: swordfish-6"},
	}
	r := whole(rep)
	r.Ledger = &ledger.Ledger{
		Bad:       []ledger.Bad{{Release: &one, Reason: "cmd.run of a failed: k=swordfish-1", Run: "8"}},
		Postponed: &ledger.Postponed{Reason: "apt: swordfish-6", Run: "6"},
	}
	data, err := json.Marshal(r.Copy())
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, "swordfish") || strings.Count(text, "why is "+notShown) != 4 ||
		!strings.Contains(text, ledger.ByHand) {
		t.Errorf("the upload is %s", text)
	}
	if kept, _ := json.Marshal(rep); strings.Count(string(kept), "swordfish") != 6 {
		t.Errorf("the report on the host lacks content: %s", kept)
	}
}

// TestSameFailureOfEarlierRunIsShown checks that the error of a state is uploaded although an earlier release failed
// with the same text, and that the text is removed where the comment of the state is.
func TestSameFailureOfEarlierRunIsShown(t *testing.T) {
	release := artifact.Release{Project: "myapp", Version: "1"}
	for function, want := range map[string]string{
		"file.exists": "file.exists of cert failed: /etc/swordfish.pem does not exist",
		"cmd.run":     "cmd.run of cert failed: its output is " + notShown,
	} {
		name := map[bool]string{true: "cert"}[function == "cmd.run"]
		reason := function + " of cert failed: /etc/swordfish.pem does not exist"
		r := whole(&report.Report{ID: "9", Error: "rolled back to myapp 0: " + reason,
			Steps: []report.Step{{ID: "cert", Function: function, Name: name, Result: report.StepFailed,
				Comment: "/etc/swordfish.pem does not exist"}},
			Quarantined: []report.Quarantined{{Release: release, Reason: reason, Run: "8"}}})
		r.Ledger = &ledger.Ledger{Bad: []ledger.Bad{{Release: &release, Reason: reason, Run: "8"}}}
		out := r.Copy()
		if out.Error != "rolled back to myapp 0: "+want || out.Quarantined[0].Reason != want {
			t.Errorf("the error is %q and the quarantine %q, want %q", out.Error, out.Quarantined[0].Reason, want)
		}
	}
}

// whole returns the filter of a report on a host without files.
func whole(rep *report.Report) Filter {
	record := report.Record(&report.Report{}, nil)
	return Filter{Report: rep, Record: record, Printed: &site.FailedOutput{},
		Readable: NewReadable(layout.Layout{}, rep, record)}
}
