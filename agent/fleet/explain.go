package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Limits of the errors that Explain reads, with one request each: of entries of the attention list, of hosts of an
// entry and of hosts in all. mostErrors bounds the different errors that an entry shows.
const (
	mostExplained = 20
	mostOfEntry   = 5
	mostRead      = 40
	mostErrors    = 3
)

// Explain sets the reason why hosts failed: for each group of hosts, the errors that the first of them reported, each
// different one with its hosts. A record that this reader may not read is named in place of the reason.
func (v *View) Explain(ctx context.Context, s store.Store) error {
	byName := map[string]Host{}
	for _, h := range v.Hosts {
		byName[h.Host] = h
	}
	entries, left := min(len(v.Attention), mostExplained), mostRead
	for i := range v.Attention[:entries] {
		a := &v.Attention[i]
		if !isFailure(a.What) && a.What != NoEvidence {
			continue
		}
		most := max(1, min(mostOfEntry, left-(entries-i-1)))
		found, err := v.errorsOf(ctx, s, *a, byName, most)
		if errors.Is(err, store.ErrForbidden) {
			a.Why, a.Hint = fmt.Sprintf("its error is not shown: %v", err), "to read it takes the right to read below fleet/ "+
				"in the store (docs/buckets.md)"
			continue
		}
		if err != nil {
			return err
		}
		left -= most
		a.explain(found)
	}
	return nil
}

// errorsOf returns the different errors and hints of the first hosts of an entry that have a record, at most of most
// hosts. The record of a host with base and its service in quarantine has the error of the service.
func (v *View) errorsOf(ctx context.Context, s store.Store, a Attention, byName map[string]Host,
	most int) (found []Said, err error) {
	index := map[hostrecord.Detail]int{}
	for _, name := range a.Hosts {
		h, ok := byName[name]
		if !ok || a.Project == artifact.Base && h.Project != artifact.Base && h.AlsoBase && !h.OfBase {
			continue
		}
		if most--; most < 0 {
			break
		}
		detail, err := hostrecord.Read(ctx, s, v.Known, h.Listed)
		if err != nil {
			return nil, err
		}
		if detail.Error == "" {
			continue
		}
		at, known := index[detail]
		if !known {
			at, index[detail] = len(found), len(found)
			found = append(found, Said{Error: detail.Error, Hint: detail.Hint})
		}
		found[at].Hosts = append(found[at].Hosts, name)
	}
	return found, nil
}

// explain sets the reason of an entry, and the hint of its error. Of several errors each is named with its hosts, and
// they have a hint together only if it is the same.
func (a *Attention) explain(found []Said) {
	if len(found) == 0 {
		return
	}
	a.Said, a.advice = found, a.Hint
	if len(found) == 1 {
		a.Why, a.Hint = found[0].Error, cmp.Or(found[0].Hint, a.Hint)
		return
	}
	var lines []string
	same := true
	for _, e := range found[:min(len(found), mostErrors)] {
		lines = append(lines, fmt.Sprintf("on %s: %s", strings.Join(e.Hosts, ", "), Brief(e.Error)))
		same = same && e.Hint == found[0].Hint
	}
	if more := len(found) - mostErrors; more > 0 {
		lines = append(lines, "and "+diag.Count(more, "more error"))
	}
	a.Why = strings.Join(lines, "\n")
	if a.Hint = cmp.Or(found[0].Hint, a.Hint); !same {
		a.Hint = "they differ: corpus host show NAME has the whole error of a host, with its hint"
		a.advice = a.Hint
	}
}

// longestBrief is the maximum length of a brief text, in bytes.
const longestBrief = 500

// Brief returns a text in one line. Of a long one it leaves out the middle: a hint is often about the end.
func Brief(text string) string {
	return hostrecord.Shortened(strings.Join(linesOf(text), "; "), longestBrief)
}

// mostLines is the maximum number of lines of a reason that are shown.
const mostLines = 6

// BriefLines returns the lines of a reason, each as Brief returns it. Of many it has the first ones and the last one.
func BriefLines(text string) []string {
	lines := linesOf(text)
	if n := len(lines); n > mostLines {
		lines = append(append(lines[:mostLines-2:mostLines-2], "..."), lines[n-1])
	}
	for i, line := range lines {
		lines[i] = Brief(line)
	}
	return lines
}

// linesOf returns the lines of a text that are not empty.
func linesOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
}
