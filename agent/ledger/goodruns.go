package ledger

import (
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// Runs returns what the host runs: the deployed pair, or base alone; nil if it runs neither.
func (l *Ledger) Runs() *Pair {
	if l.Good != nil {
		return l.Good
	}
	return l.Alone
}

// ConvergedAlone records that base alone runs.
func (l *Ledger) ConvergedAlone(p Pair) {
	l.Alone, l.Running, l.Postponed, l.Proven, l.StandsFor = &p, nil, nil, nil, nil
	l.Forgive(p)
}

// Deployed records that a pair runs.
func (l *Ledger) Deployed(p Pair, at time.Time) {
	again := l.Good != nil && l.Good.Same(p)
	l.runs(p, at)
	l.remember(p, again)
}

// WentBack records that a person rolled back to a pair. The pair keeps its place in the history, so that the pairs
// before it there are those that were good before it.
func (l *Ledger) WentBack(p Pair, at time.Time) {
	l.runs(p, at)
	l.remember(p, true)
}

// StandIn records that an earlier pair runs because the files of the deployed one are missing.
func (l *Ledger) StandIn(p Pair, at time.Time) {
	if l.StandsFor == nil {
		l.StandsFor = l.Good
	}
	l.Good, l.Since, l.Previous = &p, &at, nil
	if l.StandsFor.Same(p) {
		l.StandsFor = nil
	}
}

// StandsInFor reports whether the deployed pair stands in for another.
func (l *Ledger) StandsInFor(p Pair) bool { return l.StandsFor != nil && l.StandsFor.Same(p) }

// runs records a pair as the deployed one.
func (l *Ledger) runs(p Pair, at time.Time) {
	if l.Good != nil && !l.Good.Same(p) {
		l.Previous = l.Good
	}
	if l.Good == nil || !l.Good.Same(p) {
		l.Since = &at
	}
	l.Good, l.Alone, l.Running, l.Failing, l.Postponed, l.StandsFor = &p, nil, nil, nil, nil, nil
	if !l.Proven.Proves(&p) {
		l.Proven = nil
	}
	l.Forgive(p)
}

const (
	// keepHistory is the number of pairs that the history keeps in any case.
	keepHistory = 50
	// mostHistory bounds the pairs that it keeps because their releases are on the disk.
	mostHistory = 1000
)

// remember adds a pair at the end of the history. If stays is set, a pair that is in the history keeps its place.
func (l *Ledger) remember(p Pair, stays bool) {
	if i := slices.IndexFunc(l.History, p.Same); stays && i >= 0 {
		l.History[i] = p
		return
	}
	l.History = structsort.Without(l.History, func(q Pair) bool { return q.Same(p) })
	l.History = append(l.History, p)
	l.History = l.History[max(0, len(l.History)-mostHistory):]
}

// TrimHistory removes old pairs from the history that no rollback can lead to: held reports whether the releases of a
// pair are on the disk.
func (l *Ledger) TrimHistory(held func(Pair) bool) {
	old := max(0, len(l.History)-keepHistory)
	kept := structsort.Without(l.History[:old], func(p Pair) bool { return !held(p) })
	l.History = append(kept, l.History[old:]...)
}

// BaseOf returns the release of base with which the service's release in the directory dir was good last; nil if it was
// good without one.
func (l *Ledger) BaseOf(dir string) *artifact.Release {
	for _, pair := range slices.Backward(l.History) {
		if pair.Service.Dir() == dir {
			return pair.Base
		}
	}
	return nil
}

// Before returns the pairs of the history that were good before the deployed one, newest last.
func (l *Ledger) Before() []Pair {
	if l.Good == nil {
		return nil
	}
	if i := slices.IndexFunc(l.History, l.Good.Same); i >= 0 {
		return l.History[:i]
	}
	return l.History
}

// WasGood reports whether the release of a project in the directory dir is part of a pair that was good, and is not in
// quarantine.
func (l *Ledger) WasGood(project, dir string) bool {
	is := func(r artifact.Release) bool { return r.Project == project && r.Dir() == dir }
	if slices.ContainsFunc(l.Bad, func(b Bad) bool { return is(Release(b)) }) {
		return false
	}
	return slices.ContainsFunc(l.Pairs(), func(p *Pair) bool { return slices.ContainsFunc(p.Releases(), is) })
}
