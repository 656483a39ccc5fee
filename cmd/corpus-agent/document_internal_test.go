package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// TestReportThatCannotBePrinted has a run with --json whose report JSON cannot hold: the command says so, and keeps the
// error of the run.
func TestReportThatCannotBePrinted(t *testing.T) {
	failed := errors.New("the converge failed")
	for _, year := range []int{2026, 10000} {
		var out strings.Builder
		p := &program{IO: cli.IO{Out: &out}, json: true}
		r := &report.Report{Started: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
		(&document{p: p}).End(r)
		err := p.printed(r, failed)
		printed := year == 2026
		if !errors.Is(err, failed) || errors.Is(err, cli.ErrReported) != printed || (out.Len() > 0) != printed ||
			!printed && !strings.Contains(err.Error(), "the report cannot be written as JSON") {
			t.Errorf("the report of the year %d gives %v, and %q", year, err, out.String())
		}
	}
}
