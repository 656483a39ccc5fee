package report

import (
	"strings"
	"testing"
	"time"
)

func TestProgressOfAFetch(t *testing.T) {
	for want, c := range map[string]struct {
		name string
		done int64
		took time.Duration
	}{
		"myapp 0.0 of 12.0 MiB (0 %)":                       {"myapp", 0, time.Minute},
		"myapp 3.0 of 12.0 MiB (25 %), 1.5 MiB/s, 6s left":  {"myapp", 3 << 20, 2 * time.Second},
		strings.Repeat("x", 39) + "… 1.0 of 12.0 MiB (8 %)": {strings.Repeat("x", 80), 1 << 20, time.Millisecond},
	} {
		if got := progress(c.name, c.done, 12<<20, c.took); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestLinesPrintAboveProgress prints a line during a fetch, and checks that the end of a fetch clears the screen.
func TestLinesPrintAboveProgress(t *testing.T) {
	var screen strings.Builder
	b := NewBars(&screen)
	b.fetching("small", 1, slow-1)
	b.fetching("myapp", 1<<20, 4<<20)
	b.Above(nil, "converged\n")
	b.Stop()
	if got, want := screen.String(), wipe+"myapp 1.0 of 4.0 MiB (25 %)"+wipe+"converged\n"; got != want {
		t.Errorf("the terminal got %q, want %q", got, want)
	}
	screen.Reset()
	b.fetching("myapp", 2<<20, 4<<20)
	b.fetching("myapp", 4<<20, 4<<20)
	if got := screen.String(); !strings.HasSuffix(got, wipe) {
		t.Errorf("the line of a complete fetch remains: %q", got)
	}
	(*Bars)(nil).Stop()
}
