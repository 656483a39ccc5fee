package report_test

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/report"
)

func TestNamedPipeInsteadOfAReportDoesNotBlock(t *testing.T) {
	a := report.Archive{Dir: t.TempDir()}
	if err := syscall.Mkfifo(filepath.Join(a.Dir, "20260101T000000.000000.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Save(&report.Report{ID: report.NewID(time.Now())}, 10); err != nil {
		t.Error(err)
	}
	if _, err := a.Load("20260101T000000.000000"); err == nil {
		t.Error("a pipe was read as a report")
	}
}
