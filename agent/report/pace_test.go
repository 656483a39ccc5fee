package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/report"
)

// TestLongFetchPrintsLines checks that a long fetch without a terminal prints a line every ten seconds.
func TestLongFetchPrintsLines(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1_000_000, 0)
	l := &report.Lines{Out: &out, Now: func() time.Time { return now }}
	for done := int64(0); done <= 100<<20; done += 1 << 20 {
		l.Fetching("myapp 1", done, 100<<20)
		now = now.Add(time.Second / 2)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 {
		t.Fatalf("the output is %q, want four progress lines and one at the end", lines)
	}
	if want := "myapp 1: 20.0 MiB of 100.0 MiB, 2.0 MiB/s, 40"; !strings.Contains(lines[0], want) {
		t.Errorf("the first line is %q, want %q in it", lines[0], want)
	}
}
