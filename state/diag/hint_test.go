package diag_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestHintsOfJoinedErrors(t *testing.T) {
	disk := diag.KeepHint(errors.New("the disk is full"), "make room")
	other := diag.KeepHint(errors.New("another disk is full"), "make room")
	link := diag.KeepHint(errors.New("the link is gone"), "run it again")
	list := diag.List{diag.At(diag.Pos{File: "a.sls", Line: 1}, "a mistake").KeepHint("correct it")}
	for name, c := range map[string]struct {
		err   error
		parts []string
		hints []string
	}{
		"an empty Unwrap": {fmt.Errorf("health: %w", causeless{}), []string{"health: status 500"}, nil},
		"an empty list":   {errors.Join(disk, diag.List{}), []string{"the disk is full"}, []string{"make room"}},
		"none":            {nil, nil, nil},
		"one":             {disk, []string{"the disk is full"}, []string{"make room"}},
		"the same hint twice": {errors.Join(disk, other), []string{"the disk is full", "another disk is full"},
			[]string{"make room"}},
		"the same error twice": {errors.Join(disk, disk), []string{"the disk is full"}, []string{"make room"}},
		"joined": {errors.Join(disk, errors.Join(link, list)),
			[]string{"the disk is full", "the link is gone", "a.sls:1: a mistake"},
			[]string{"make room", "run it again", "correct it"}},
		"two wrapped errors": {fmt.Errorf("%w, and %w", disk, link), []string{"the disk is full, and the link is gone"},
			[]string{"make room", "run it again"}},
		"a hint around a list": {diag.KeepHint(fmt.Errorf("rolled back: %w", list), "publish"),
			[]string{"a.sls:1: a mistake", "rolled back"}, []string{"publish"}},
		"a hint of two lines around a list": {diag.KeepHint(
			fmt.Errorf("it failed (%w), and so did the rest", list), "correct it\nlook"),
			[]string{"a.sls:1: a mistake", "it failed (as above), and so did the rest"}, []string{"correct it\nlook"}},
		"a hint for all": {diag.KeepHint(errors.Join(disk, link), "call for help"),
			[]string{"the disk is full\nthe link is gone"}, []string{"call for help"}},
	} {
		var parts []string
		for _, part := range diag.Parts(c.err) {
			parts = append(parts, part.Error())
		}
		if !slices.Equal(parts, c.parts) || !slices.Equal(diag.HintsOf(c.err), c.hints) {
			t.Errorf("%s: parts %q, hints %q", name, parts, diag.HintsOf(c.err))
		}
	}
}

// TestAllHints checks an error that has a hint and wraps a list whose problems have hints.
func TestAllHints(t *testing.T) {
	list := diag.List{diag.At(diag.Pos{File: "a.sls", Line: 1}, "a mistake").KeepHint("correct it")}
	err := diag.KeepHint(fmt.Errorf("rolled back: %w", list), "correct it\npublish")
	if got := diag.AllHints(err); !slices.Equal(got, []string{"correct it", "publish"}) {
		t.Errorf("the hints are %q", got)
	}
}

// causeless is an error whose Unwrap returns an empty list.
type causeless struct{}

func (causeless) Error() string   { return "status 500" }
func (causeless) Unwrap() []error { return nil }

func TestJoinedErrorsAreAddedOneByOne(t *testing.T) {
	var list diag.List
	list.AddError(diag.Pos{File: "x"}, errors.Join(errors.New("one"), diag.At(diag.Pos{File: "y"}, "two"),
		diag.List{diag.At(diag.Pos{File: "z"}, "three")}))
	if got := list.Error(); got != "x: one\ny: two\nz: three" {
		t.Errorf("the list is %q", got)
	}
}
