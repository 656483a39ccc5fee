package undo_test

import (
	"os"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestSelectAcrossAClockThatWasSetBack has runs whose IDs, which are times, are not in the order of the runs.
func TestSelectAcrossAClockThatWasSetBack(t *testing.T) {
	runs := []string{"20270101T000000.000000", "20260101T000000.000000", "20260102T000000.000000"}
	c := &journal.Chapter{Number: 1, Runs: runs}
	for i, run := range runs {
		c.Records = append(c.Records, &journal.Record{Chapter: 1, Seq: i, Run: run})
	}
	quiet := "20270102T000000.000000" // it ran after the first, and changed nothing
	sequence := map[string]int64{runs[0]: 1, quiet: 2, runs[1]: 3, runs[2]: 4}
	for name, test := range map[string]struct {
		scope undo.Scope
		want  []string
	}{
		"a run of the journal":       {undo.Scope{Run: runs[0]}, []string{runs[2], runs[1]}},
		"the last run":               {undo.Scope{Run: runs[2]}, nil},
		"a run that changed nothing": {undo.Scope{Run: quiet, Sequence: sequence}, []string{runs[2], runs[1]}},
		"a single run":               {undo.Scope{Only: runs[2]}, runs[2:]},
		"a run that is not known":    {undo.Scope{Run: "20260101T120000.000000"}, []string{runs[2], runs[0]}},
	} {
		records, _ := undo.Select([]*journal.Chapter{c}, test.scope)
		var got []string
		for _, r := range records {
			got = append(got, r.Run)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: undone is %q, want %q", name, got, test.want)
		}
	}
}

// TestOrderOfTheRestore checks that the last change is restored first and, of one change, that what is removed comes
// before what is made, the content of a directory before the directory, and a new directory before its content.
func TestOrderOfTheRestore(t *testing.T) {
	s := newScene(t)
	s.put("/etc/a", "old\n")
	s.do(os.MkdirAll(s.path("/srv/tree/old"), 0o755))
	s.put("/srv/tree/old/f", "old\n")
	s.run("1", func(h *host.Host) {
		s.write("/etc/z", "new\n")(h)
		s.named(host.KindTree, "/srv/tree")
		s.do(os.RemoveAll(s.path("/srv/tree/old")))
		s.do(os.MkdirAll(s.path("/srv/tree/new/sub"), 0o755))
		s.put("/srv/tree/new/sub/f", "new\n")
		s.write("/etc/a", "new\n")(h)
	})
	want := []string{"file /etc/a", "file /srv/tree/new/sub/f", "file /srv/tree/new/sub", "file /srv/tree/new",
		"file /srv/tree/old", "file /srv/tree/old/f", "file /etc/z"}
	p, _ := s.plan()
	if got := p.Summary().Restored; !slices.Equal(got, want) {
		t.Errorf("the plan is\n%q, want\n%q", got, want)
	}
	s.expect(s.restoreTwice(), want)
}
