package undo_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/undo"
)

// TestSecondDeployKeepsTheChangesOfTheFirst has a pair deployed twice, with a pair in between that changed nothing and
// so has no chapter. A rollback to that pair keeps what the first deploy changed.
func TestSecondDeployKeepsTheChangesOfTheFirst(t *testing.T) {
	first, quiet, again := ledger.Key{Bytes: "1"}, ledger.Key{Bytes: "2.1"}, ledger.Key{Bytes: "2"}
	chapter := func(number int, pair, over ledger.Key, run string) *journal.Chapter {
		return &journal.Chapter{Number: number, Header: journal.Header{Pair: pair.Bytes, Over: over.Bytes},
			Runs: []string{run}, Records: []*journal.Record{{Run: run}}}
	}
	old := []*journal.Chapter{chapter(1, first, ledger.Key{}, "r1"), chapter(2, again, first, "r2")}
	for name, c := range map[string]struct {
		scope undo.Scope
		want  int
		short bool
	}{
		"the first run is known":           {undo.Scope{From: again, To: quiet, Over: quiet, First: "r3"}, 0, false},
		"a ledger of an older agent":       {undo.Scope{From: again, To: quiet, Over: quiet}, 0, true},
		"the other pair ran before both":   {undo.Scope{From: again, To: quiet, Over: first, First: "r10"}, 1, false},
		"the pair before is in no chapter": {undo.Scope{From: again, To: quiet, Over: first}, 1, true},
	} {
		records, short := undo.Select(old, c.scope)
		if len(records) != c.want || short != c.short {
			t.Errorf("%s: %d records are selected, short %v; want %d, %v", name, len(records), short, c.want, c.short)
		}
	}
}
