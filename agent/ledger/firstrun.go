package ledger

import (
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// FirstRun names the run that first deployed a pair, as far as the ledger reaches back. A pair that changed nothing is
// not in the journal, so the journal alone does not show which changes are older than the pair.
type FirstRun struct {
	Bytes   string `json:"pair"` // see Key
	Service string `json:"service,omitempty"`
	Run     string `json:"run"`
}

func (f FirstRun) key() Key { return Key{Bytes: f.Bytes, Service: f.Service} }

// NoteFirstRun records run as the first one of a pair that now runs, unless an earlier run is recorded. It forgets the
// pairs that are not in the history any more.
func (l *Ledger) NoteFirstRun(p Pair, run string) {
	l.FirstRuns = structsort.Without(l.FirstRuns, func(f FirstRun) bool { return !l.remembers(f.key()) })
	if l.FirstRun(p.Key()) == "" {
		k := p.Key()
		l.FirstRuns = append(l.FirstRuns, FirstRun{Bytes: k.Bytes, Service: k.Service, Run: run})
	}
}

// FirstRun returns the ID of the run that first deployed the pair with key k; "" if that is not known.
func (l *Ledger) FirstRun(k Key) string {
	for _, f := range l.FirstRuns {
		if f.key().Same(k) {
			return f.Run
		}
	}
	return ""
}

// remembers reports whether the pair with key k runs or is in the history.
func (l *Ledger) remembers(k Key) bool {
	for _, p := range l.Pairs() {
		if p.Key().Same(k) {
			return true
		}
	}
	return false
}
