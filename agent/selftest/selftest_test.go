package selftest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/selftest"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/agent/undo/recording"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// program is an agent that fails if its configuration is broken.
const program = "#!/bin/sh\necho \"agent 1\"\n! grep -q broken \"$(dirname \"$0\")/agent.yaml\"\n"

// watched returns a run on a host with such an agent, which has read the agent's files.
func watched(t *testing.T) (r *selftest.Run, rep *report.Report, file string) {
	t.Helper()
	dir := t.TempDir()
	agent, file := filepath.Join(dir, "corpus-agent"), filepath.Join(dir, "agent.yaml")
	for _, err := range []error{
		os.WriteFile(agent, []byte(program), 0o755), os.WriteFile(file, []byte("keep: 1\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	host := &inspect.Host{Records: records.Records{Site: site.Site{Layout: layout.At(t.TempDir()),
		Config: config.Config{Engine: "native"}}}}
	rep = &report.Report{}
	record := report.Record(rep, host.Secrets())
	r = &selftest.Run{
		Host: host, ID: "2", Record: record,
		Self:     &self.Self{Executable: agent, Image: agent, Files: []string{file}, Env: os.Environ()},
		Undo:     &recording.Run{Host: host, ID: "2", Ledger: &ledger.Ledger{}, Record: record},
		Lend:     func() *os.File { return nil },
		Settings: func() *value.Map { return nil },
	}
	r.Watch()
	return r, rep, file
}

func change(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyAChangedAgentIsTried checks that a run tries the agent once after its files changed, and not otherwise.
func TestOnlyAChangedAgentIsTried(t *testing.T) {
	r, rep, file := watched(t)
	if err := r.Try(t.Context()); err != nil || len(rep.Stages) > 0 {
		t.Errorf("an agent that did not change is tried: %+v, %v", rep.Stages, err)
	}
	change(t, file, "keep: 22\n")
	for range 2 {
		if err := r.Try(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	notes := strings.Join(rep.Notes, "\n")
	if strings.Count(notes, "was tried and works: agent 1") != 1 || !strings.Contains(notes, file) {
		t.Errorf("the notes are %q", notes)
	}
}

// TestBrokenAgentIsRestored checks that a run that breaks the agent fails, that the agent's files are as at its
// beginning, and that a dry run tries nothing.
func TestBrokenAgentIsRestored(t *testing.T) {
	r, rep, file := watched(t)
	if err := r.Keep(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	change(t, file, "broken\n")
	err := r.Keep(t.Context(), nil)
	var broken *self.Broken
	if exit.Code(err) != exit.Failed || !errors.As(err, &broken) {
		t.Errorf("exit code %d, %v", exit.Code(err), err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "keep: 1\n" {
		t.Errorf("the configuration is %q, %v", text, err)
	}
	if notes := strings.Join(rep.Notes, "\n"); !strings.Contains(notes, "this run restored their earlier content") {
		t.Errorf("the notes are %q", notes)
	}
	r, rep, file = watched(t)
	r.Test = true
	change(t, file, "broken\n")
	if err := r.Keep(t.Context(), nil); err != nil || len(rep.Stages) > 0 {
		t.Errorf("a dry run tries the agent: %+v, %v", rep.Stages, err)
	}
}
