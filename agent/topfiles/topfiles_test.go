package topfiles_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/agent/topfiles"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
)

// examined returns a deploy of a host whose state roots /a and /b have top files, and the number of its saves.
func examined(t *testing.T) (*topfiles.Run, *report.Report, *int) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "top.sls"), []byte("base: {}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	host := &inspect.Host{Records: records.Records{Site: site.Site{Layout: layout.At(root),
		Config: config.Config{Engine: "native"}}}}
	rep, saves := &report.Report{}, 0
	return &topfiles.Run{
		Host: host, Ledger: &ledger.Ledger{}, Record: report.Record(rep, host.Secrets()), Native: true,
		Top: func() *report.Top { return rep.Top }, BeforeLinks: func() bool { return true },
		Save: func() error { saves++; return nil },
	}, rep, &saves
}

func pair() ledger.Pair {
	of := func(project string) artifact.Release {
		return artifact.Release{Project: project, Version: "1", Digest: artifact.NewDigest(sha256.Sum256([]byte(project)))}
	}
	base := of(artifact.Base)
	return ledger.Pair{Base: &base, Service: of("shop")}
}

// TestTopFilesThatApply checks which top file is in the report: that of the first root, or those of all roots if they
// are merged, the last root first.
func TestTopFilesThatApply(t *testing.T) {
	for name, c := range map[string]struct {
		merge bool
		want  string
	}{
		"the first":  {false, "/a/top.sls decided which states run; /b/top.sls did not count"},
		"all merged": {true, "/b/top.sls, then /a/top.sls decided which states run"},
	} {
		r, rep, _ := examined(t)
		r.Report(state.Request{StateRoots: []string{"/a", "/none", "/b"}, TopRoots: c.merge})
		if rep.Top == nil || rep.Top.String() != c.want {
			t.Errorf("%s: the report has %v, want %s", name, rep.Top, c.want)
		}
	}
}

// TestReleaseWithoutStatesIsNoted checks that a deploy notes a base whose top file is hidden, and one without states.
func TestReleaseWithoutStatesIsNoted(t *testing.T) {
	r, rep, _ := examined(t)
	r.Report(state.Request{StateRoots: []string{"/a", "/b"}})
	r.NoteUnused(pair(), &topfiles.Origins{})
	notes := strings.Join(rep.Notes, "\n")
	for _, want := range []string{"no state of base 1 ran", "set `top: merge`",
		"no state ran: /a/top.sls gives this host none"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes are %q, want %q", notes, want)
		}
	}
	r, rep, _ = examined(t)
	r.BeforeLinks = func() bool { return false }
	r.Report(state.Request{StateRoots: []string{"/a", "/b"}})
	if r.NoteUnused(pair(), &topfiles.Origins{}); len(rep.Notes) > 0 {
		t.Errorf("a run that deploys nothing notes %q", rep.Notes)
	}
}

// TestStatesThatDisappear checks that a converge that lost all states fails unless its top files are as signed, and
// that the ledger keeps the number of states.
func TestStatesThatDisappear(t *testing.T) {
	r, _, saves := examined(t)
	if err := r.Count(t.Context(), pair(), state.Outcome{Results: make([]*exec.Result, 3)}); err != nil {
		t.Fatal(err)
	}
	if r.Ledger.States != 3 || *saves != 1 {
		t.Errorf("the ledger has %d states after %d saves, want 3 after one", r.Ledger.States, *saves)
	}
	err := r.Count(t.Context(), pair(), state.Outcome{})
	if err == nil || !strings.Contains(err.Error(), "which had 3 in the last converge") ||
		!strings.Contains(err.Error(), "is not signed") || diag.HintOf(err) == "" {
		t.Errorf("the error is %v", err)
	}
	if r.Ledger.States != 3 || *saves != 1 {
		t.Errorf("the failure left %d states after %d saves", r.Ledger.States, *saves)
	}
	r.Test = true
	if err := r.Count(t.Context(), pair(), state.Outcome{Results: make([]*exec.Result, 2)}); err != nil || *saves != 1 {
		t.Errorf("a dry run saved the ledger (%v)", err)
	}
}
