package report_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/report"
)

// TestFetchesAreStreamedOnceASecond checks that a fast fetch does not print an event for each received piece, and that
// its end is always printed.
func TestFetchesAreStreamedOnceASecond(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &report.Stream{Out: &out, Now: func() time.Time { return now }}
	for piece := range int64(25) {
		s.Fetching("myapp 1.0", piece+1, 25)
		now = now.Add(100 * time.Millisecond)
	}
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != 4 { // at 0, 1 and 2 seconds, and the last piece
		t.Errorf("%d events, want 4:\n%s", lines, out.Bytes())
	}
	if want := []byte(`"artifact":"myapp 1.0","done":25,"total":25}` + "\n"); !bytes.HasSuffix(out.Bytes(), want) {
		t.Errorf("the last event is not the end of the fetch:\n%s", out.Bytes())
	}
}
