// Package undo takes back what converging did, by the journal.
//
// It goes backwards through the records, and for each thing that was changed compares three images:
// what it was before, what the run made of it, and what it is now. Only what is still as the run left
// it is put back. What somebody has changed since stays as it is and is named, and so is what nobody
// can take back. Because the comparing is done part by part and by content, a restore that was cut
// short is simply begun again.
package undo

import (
	"cmp"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Scope says how far to go back.
type Scope struct {
	From string // key of the pair of releases to leave
	To   string // key of the pair to come to; "" for the time before the first
	Run  string // the last run whose changes stay, in the place of From and To
	Only string // the run whose changes alone are taken back, in the place of all these

	// Sequence orders runs that the journal does not: it has the number of each run of which that is known.
	// The IDs of runs are times, which a clock that is set back gives twice.
	Sequence map[string]int64
}

// after reports whether a run came after the one whose changes are the last to stay. The journal has runs in
// their order; a run that changed nothing is not in it, and has a number. Where neither is known the time
// decides.
func (s Scope) after(run string, order map[string]int) bool {
	if at, known := order[s.Run]; known {
		return order[run] > at
	}
	number, known := s.Sequence[run]
	if than, both := s.Sequence[s.Run]; known && both {
		return number > than
	}
	return run > s.Run
}

// orderOf is the place of each run in the journal.
func orderOf(chapters []*journal.Chapter) map[string]int {
	order := map[string]int{}
	for _, c := range chapters {
		for _, run := range c.Runs {
			if _, known := order[run]; !known {
				order[run] = len(order)
			}
		}
	}
	return order
}

// Select finds the records that a scope takes back, newest first. Short says that the journal does
// not reach as far back as it should.
func Select(chapters []*journal.Chapter, s Scope) (records []*journal.Record, short bool) {
	first, order := 0, orderOf(chapters)
	switch {
	case s.Only != "":
	case s.Run == "":
		first, short = reach(chapters, s)
	default:
		short = len(chapters) > 0 && chapters[0].Number > 1 && len(chapters[0].Runs) > 0 && s.after(chapters[0].Runs[0], order)
	}
	if s.Run == "" && s.Only == "" {
		records = earlier(chapters[:first], s)
	}
	for _, c := range chapters[first:] {
		for _, r := range c.Live() {
			if s.Only == r.Run || s.Only == "" && (s.Run == "" || s.after(r.Run, order)) {
				records = append(records, r)
			}
		}
	}
	slices.Reverse(records)
	return records, short
}

// reach finds the first of the chapters since the pair to come to was left. Tries that failed on the
// way, and were not taken back, are among them.
func reach(chapters []*journal.Chapter, s Scope) (first int, short bool) {
	first, short = len(chapters), true
	for i, c := range slices.Backward(chapters) {
		if c.Pair == s.To && s.To != "" {
			break
		}
		if c.Over == s.To {
			first, short = i, false
		}
	}
	if !short {
		return first, false
	}
	for i, c := range slices.Backward(chapters) {
		if c.Pair != s.From {
			break
		}
		first = i
	}
	return first, first < len(chapters)
}

// Left is something that stays as it is.
type Left struct {
	Subject string `json:"subject"`
	Step    string `json:"step,omitempty"`
	Why     string `json:"why"`
	Changed bool   `json:"-"` // it stays because something else has changed it since
}

func (l Left) String() string {
	if l.Step == "" {
		return l.Subject + ": " + l.Why
	}
	return l.Subject + " (" + l.Step + "): " + l.Why
}

// Summary is what a restore did, or would do.
type Summary struct {
	Restored  []string `json:"restored"`
	Left      []Left   `json:"left"`
	Restarted []string `json:"restarted"`
	Failed    []Left   `json:"failed,omitempty"`
}

// Empty reports whether there was nothing to do and nothing to say.
func (s Summary) Empty() bool {
	return len(s.Restored)+len(s.Left)+len(s.Restarted)+len(s.Failed) == 0
}

// Action puts one subject back.
type Action struct {
	Subject host.Subject
	Step    string
	Secret  bool
	Parts   []*Part

	records []*journal.Record
	whole   image.Image // with the parts that stay
	at      place
	done    bool
}

// Part is what becomes of one part of a subject.
type Part struct {
	Now, Want image.Part
	chapter   *journal.Chapter  // that has the content
	since     []*journal.Record // that it goes back through
	blocked   string            // why it does not go back further
	changed   bool              // that is a change by something else
}

// place orders records.
type place struct{ chapter, seq int }

func placeOf(r *journal.Record) place { return place{r.Chapter, r.Seq} }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.chapter, q.chapter), cmp.Compare(p.seq, q.seq))
}
