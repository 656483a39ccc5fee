package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/report"
)

// TestSaveDoesNotOpenOldReports changes the sequence number in an old report. Save does not read it while the index is
// intact, and reads it if the index is damaged.
func TestSaveDoesNotOpenOldReports(t *testing.T) {
	archive := report.Archive{Dir: t.TempDir()}
	save := func(n int) int64 {
		t.Helper()
		r := &report.Report{ID: fmt.Sprintf("20260101T00000%d.000000", n)}
		if err := archive.Save(r, 3); err != nil {
			t.Fatal(err)
		}
		return r.Sequence
	}
	for n := range 3 {
		save(n)
	}
	old := filepath.Join(archive.Dir, "20260101T000002.000000.json")
	if err := os.WriteFile(old, []byte(`{"sequence": 50,`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := save(3); got != 4 {
		t.Errorf("the fourth report has sequence %d: old reports were opened", got)
	}
	if ids, err := archive.IDs(); err != nil || len(ids) != 3 {
		t.Errorf("reports %v, %v", ids, err)
	}
	if err := os.WriteFile(filepath.Join(archive.Dir, ".sequences"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := save(4); got != 51 {
		t.Errorf("with a damaged index the sequence is %d", got)
	}
}
