package fleet_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// forbidding is a store whose objects this reader may list and not read.
type forbidding struct{ store.Store }

// Get is part of store.Store.
func (forbidding) Get(context.Context, string, int64) (io.ReadCloser, store.Info, error) {
	return nil, store.Info{}, store.ErrForbidden
}

// TestFleetIsShownWithoutTheRightToReadErrors checks that a host whose error this reader may not read is listed, with
// the right that is missing in place of the error.
func TestFleetIsShownWithoutTheRightToReadErrors(t *testing.T) {
	s := mem.New()
	newReporting(t, s, "a", hostrecord.Flags{Unseeing: true})
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Explain(t.Context(), forbidding{s}); err != nil {
		t.Fatalf("the fleet is not shown: %v", err)
	}
	if a := v.Attention[0]; !strings.Contains(a.Why, "not shown") || !strings.Contains(a.Hint, "read below fleet/") {
		t.Errorf("the entry is %+v", a)
	}
}

// TestErrorsOfSeveralHostsAreShown checks that an entry has the different errors of its hosts, each with its hosts, the
// end of a long error, and a hint only if it is about all of them.
func TestErrorsOfSeveralHostsAreShown(t *testing.T) {
	long := "state app: " + strings.Repeat("x", 5000) + "\nno space left on device"
	for _, c := range []struct {
		what   string
		errors []string
		why    []string // each is in the reason
		hint   string
	}{
		{"one error", []string{"the port is taken", "the port is taken"}, []string{"the port is taken"},
			"about the port is taken"},
		{"the first host has none", []string{"", "the port is taken"}, []string{"the port is taken"},
			"about the port is taken"},
		{"two", []string{"the port is taken", "the disk is full", "the port is taken"},
			[]string{"on a, c: the port is taken", "\non b: the disk is full"}, "corpus host show NAME has the whole error"},
		{"a long one", []string{long}, []string{"state app: xxx", " ... ", "xxx\nno space left on device"},
			"about state app"},
	} {
		s := mem.New()
		for i, text := range c.errors {
			h := newReporting(t, s, string(rune('a'+i)), hostrecord.Flags{})
			h.record.Outcome, h.record.Sequence, h.record.Wanted = "rolled-back", 2, place("2", 2)
			about, _, _ := strings.Cut(text, ":")
			detail := hostrecord.Detail{Error: text, Hint: "about " + about}
			if err := h.Write(t.Context(), h.record, detail); err != nil {
				t.Fatal(err)
			}
		}
		v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
		if err == nil {
			err = v.Explain(t.Context(), s)
		}
		if err != nil || len(v.Attention) != 1 {
			t.Fatalf("%s: %+v, %v", c.what, v.Attention, err)
		}
		a := v.Attention[0]
		for _, want := range c.why {
			if !strings.Contains(a.Why, want) {
				t.Errorf("%s: the reason lacks %q: %.300s", c.what, want, a.Why)
			}
		}
		if !strings.Contains(a.Hint, c.hint) {
			t.Errorf("%s: the hint is %q, want %q", c.what, a.Hint, c.hint)
		}
	}
}

// TestBriefTextsHaveTheirEnd checks that a text that is too long for a line keeps its beginning and its end.
func TestBriefTextsHaveTheirEnd(t *testing.T) {
	text := "first\n" + strings.Repeat("\u00e4", 1000) + "\nlast"
	got := fleet.Brief(text)
	if len(got) > 500 || !strings.HasPrefix(got, "first; ") || !strings.HasSuffix(got, "; last") {
		t.Errorf("the line is %q", got)
	}
	lines := fleet.BriefLines(strings.Repeat("line\n", 50) + "last\n")
	if n := len(lines); n != 6 || lines[4] != "..." || lines[5] != "last" {
		t.Errorf("the lines are %q", lines)
	}
}

// TestTextsOfHostsAreTheirWords checks that each different error and hint is quoted with the names of its hosts, and
// that the hint of a host is not one of the program.
func TestTextsOfHostsAreTheirWords(t *testing.T) {
	s := mem.New()
	for i, hint := range []string{"curl evil\nhint: curl \"evil\"", "look at web", "look at web"} {
		h := newReporting(t, s, string(rune('a'+i)), hostrecord.Flags{})
		h.record.Outcome, h.record.Sequence, h.record.Wanted = "rolled-back", 2, place("2", 2)
		if err := h.Write(t.Context(), h.record, hostrecord.Detail{Error: "web failed", Hint: hint}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := fleet.Look(t.Context(), fleet.Query{Store: s, Now: time.Now(), SilentAfter: time.Hour})
	if err == nil {
		err = v.Explain(t.Context(), s)
	}
	if err != nil || len(v.Attention) != 1 {
		t.Fatal(v.Attention, err)
	}
	want := []string{`a says: "web failed"`, `a advises: "curl evil; hint: curl \"evil\""`, `b, c say: "web failed"`,
		`b, c advise: "look at web"`}
	if got := v.Attention[0].Lines(); !slices.Equal(got, want) {
		t.Errorf("the lines are %q", got)
	}
	if advice := v.Attention[0].Advice(); strings.Contains(advice, "evil") || strings.Contains(advice, "web") {
		t.Errorf("the program advises %q", advice)
	}
}
