// Package undo restores what converge runs changed, from the journal.
//
// It reads the records from the newest to the oldest, and compares three images of each changed subject: before the
// run, after the run, and now. It restores a subject only if it still is as the run left it. It reports, and does not
// change, a subject that was changed since, and a change that cannot be undone. It compares part by part and by
// content, so an interrupted restore can simply be repeated.
package undo

import (
	"cmp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// Scope selects the runs whose changes are undone.
type Scope struct {
	From ledger.Key // of the pair of releases to roll back from
	To   ledger.Key // of the pair to roll back to; zero for the time before the first
	Run  string     // ID of the last run whose changes stay; replaces From and To
	Only string     // ID of the only run whose changes are undone; replaces From, To and Run

	// A pair that changed nothing is not in the journal. If To is such a pair, First and Over determine which changes of
	// From are older than To: those stay.
	First string     // ID of the run that first deployed To; "" if that is not known
	Over  ledger.Key // of the pair that From replaced last; zero if that is not known

	// Sequence has the sequence numbers of runs, by ID. It orders runs that are not in the journal. The order of their
	// IDs, which are times, is wrong if the clock was set back.
	Sequence map[string]int64
}

// after reports whether run, which is in the journal, is newer than the run other. The order in the journal decides if
// both are in it. A run that changed nothing is not in it; then the sequence numbers decide, or, if one is not known,
// the times in the IDs.
func (s Scope) after(run, other string, order map[string]int) bool {
	if at, known := order[other]; known {
		return order[run] > at
	}
	number, known := s.Sequence[run]
	if than, both := s.Sequence[other]; known && both {
		return number > than
	}
	return run > other
}

// orderOf returns the index of each run in the order of the journal.
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

// Select returns the records that s undoes, newest first. It sets short if the journal does not reach back far enough.
func Select(chapters []*journal.Chapter, s Scope) (records []*journal.Record, short bool) {
	first, order := 0, orderOf(chapters)
	switch {
	case s.Only != "":
	case s.Run == "":
		first, short = reach(chapters, s, order)
	default:
		short = s.cut(chapters, s.Run, order)
	}
	if s.Run == "" && s.Only == "" {
		records = earlier(chapters[:first], s, order)
	}
	for _, c := range chapters[first:] {
		for _, r := range c.Live() {
			if s.Only == r.Run || s.Only == "" && (s.Run == "" || s.after(r.Run, s.Run, order)) {
				records = append(records, r)
			}
		}
	}
	slices.Reverse(records)
	return records, short
}

// reach returns the index of the first chapter written since s.To was replaced. The chapters include those of failed
// deploys that were not rolled back. It sets short if the journal does not have that chapter, and changes of s.From are
// or may be missing.
func reach(chapters []*journal.Chapter, s Scope, order map[string]int) (first int, short bool) {
	first, short = len(chapters), true
	own := false // a chapter of s.To itself shows that what follows is newer than s.To
	for i, c := range slices.Backward(chapters) {
		if own = c.Key().Same(s.To) && s.To.Bytes != ""; own {
			break
		}
		if c.OverKey().Same(s.To) {
			first, short = i, false
		}
	}
	switch {
	case !short:
		return first, false
	case !own && s.First != "": // earlier selects the changes since that run
		return len(chapters), s.cut(chapters, s.First, order) || s.between(chapters, order)
	}
	for i, c := range slices.Backward(chapters) {
		if !c.Key().Same(s.From) {
			break
		}
		if !own && s.Over.Bytes != "" && !c.OverKey().Same(s.Over) {
			return first, len(c.Live()) > 0 || first < len(chapters) // an earlier deploy of s.From, maybe older than s.To
		}
		first = i
	}
	return first, first < len(chapters)
}

// cut reports whether chapters written since a run may have been removed from the journal.
func (s Scope) cut(chapters []*journal.Chapter, run string, order map[string]int) bool {
	return len(chapters) > 0 && chapters[0].Number > 1 && len(chapters[0].Runs) > 0 &&
		s.after(chapters[0].Runs[0], run, order)
}

// between reports whether pairs between s.To and s.From have changes, which stay since no chapter shows when they
// replaced s.To.
func (s Scope) between(chapters []*journal.Chapter, order map[string]int) bool {
	return !s.Over.Same(s.To) && slices.ContainsFunc(chapters, func(c *journal.Chapter) bool {
		return !c.Key().Same(s.From) && slices.ContainsFunc(c.Live(), func(r *journal.Record) bool {
			return s.after(r.Run, s.First, order)
		})
	})
}

// Left is a subject that is not restored.
type Left struct {
	Subject string `json:"subject"`
	Step    string `json:"step,omitempty"`
	Why     string `json:"why"`
	Changed bool   `json:"-"` // it is not restored because it was changed after the run
}

func (l Left) String() string {
	if l.Step == "" {
		return l.Subject + ": " + l.Why
	}
	return l.Subject + " (" + l.Step + "): " + l.Why
}

// Lines returns what was left or failed as text, with each reason once.
func Lines(all []Left) string {
	subjects := map[string][]string{}
	var reasons []string
	for _, l := range all {
		if subjects[l.Why] == nil {
			reasons = append(reasons, l.Why)
		}
		subjects[l.Why] = append(subjects[l.Why], strings.TrimSuffix(l.String(), ": "+l.Why))
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(subjects[why], ", ") + ": " + why
	}
	return strings.Join(reasons, "; ")
}

// Summary is the result of a restore, or of its dry run.
type Summary struct {
	Restored  []string `json:"restored"`
	Left      []Left   `json:"left"`
	Restarted []string `json:"restarted"`
	Failed    []Left   `json:"failed,omitempty"`

	Unfinished bool `json:"-"` // records are left that the next restore retries
}

// Empty reports whether all lists of s are empty.
func (s Summary) Empty() bool {
	return len(s.Restored)+len(s.Left)+len(s.Restarted)+len(s.Failed) == 0
}

// Action restores one subject.
type Action struct {
	Subject host.Subject
	Step    string
	Secret  bool
	Parts   []*Part

	records []*journal.Record
	whole   image.Image // the wanted image, including the parts that are not restored
	at      place       // of the oldest record
	done    bool
}

// Part is one part of a subject and its wanted state.
type Part struct {
	Now, Want image.Part
	chapter   *journal.Chapter  // the chapter with the content of Want
	since     []*journal.Record // the records to undo
	blocked   string            // why older records are not undone
	changed   bool              // blocked because the part was changed after the run
}

// place is the position of a record in the journal.
type place struct{ chapter, seq int }

func placeOf(r *journal.Record) place { return place{r.Chapter, r.Seq} }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.chapter, q.chapter), cmp.Compare(p.seq, q.seq))
}
