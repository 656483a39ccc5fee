package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/notify"
)

// TestStatesThatAlwaysRunAreNotDrift applies states that act in every run. status, why and notifications do not report
// them as drift, and status lists them; a file that drifted as well is drift.
func TestStatesThatAlwaysRunAreNotDrift(t *testing.T) {
	t.Parallel()
	l := newNativeLab(t)
	l.states("1", "sync:\n  test.succeed_with_changes: []\nPORT:\n  environ.setenv:\n  - value: '80'\n/etc/drifts:\n"+
		"  file.managed:\n  - contents: good\n  - makedirs: true\n")
	l.expect(exit.OK)
	for _, drifts := range []bool{false, true} {
		event, drift, next := notify.NoChange, "", ""
		if drifts {
			must(t, os.WriteFile(l.Layout.Path("/etc/drifts"), []byte("bad\n"), 0o644))
			event, drift, next = notify.Success, "the last run found drift, and corrected 1 state", "corpus-agent converge"
		}
		r := l.expect(exit.OK)
		if got := notify.EventOf(r); got != event || r.States.Always != 2 {
			t.Errorf("drifts %v: the event is %s, want %s; %+v", drifts, got, event, r.States)
		}
		w, err := l.Why()
		if err != nil || strings.Join(w.Drift, "\n") != drift || strings.Join(w.Next, "\n") != next {
			t.Errorf("drifts %v: drift is %q, next %q, %v", drifts, w.Drift, w.Next, err)
		}
		if s := mustStatus(t, l); strings.Join(s.Always, ", ") != "test.succeed_with_changes sync in app, environ.setenv "+
			"PORT in app" {
			t.Errorf("drifts %v: status names %q", drifts, s.Always)
		}
	}
}

// TestReactionsToStatesThatAlwaysRunAreNotDrift has states watch one that acts in every run, and a file.
func TestReactionsToStatesThatAlwaysRunAreNotDrift(t *testing.T) {
	t.Parallel()
	l := newNativeLab(t)
	l.states("1", `sync:
  test.succeed_with_changes: []
/etc/drifts:
  file.managed:
  - contents: good
  - makedirs: true
after:
  test.succeed_with_changes:
  - onchanges: [{test: sync}]
then:
  test.succeed_with_changes:
  - onchanges: [{test: after}]
watches:
  test.succeed_without_changes:
  - watch: [{test: then}]
listens:
  test.succeed_without_changes:
  - listen: [{test: sync}]
either:
  test.succeed_with_changes:
  - onchanges: [{test: sync}, {file: /etc/drifts}]
`)
	l.expect(exit.OK)
	r := l.expect(exit.OK)
	if got := notify.EventOf(r); got != notify.NoChange || r.States.Always != 6 {
		t.Errorf("without drift the event is %s; %+v", got, r.States)
	}
	if s := mustStatus(t, l); len(s.Drift) > 0 {
		t.Errorf("without drift status has the drift %q", s.Drift)
	}
	must(t, os.WriteFile(l.Layout.Path("/etc/drifts"), []byte("bad\n"), 0o644))
	if r := l.expect(exit.OK); notify.EventOf(r) != notify.Success || r.States.Always != 5 {
		t.Errorf("with drift the event is %s; %+v", notify.EventOf(r), r.States)
	}
}
