package main

import (
	"encoding/json"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// document is a sink that prints the report of a run as one JSON document when the run is over.
type document struct{ p *program }

func (d *document) Begin(*report.Report)          {}
func (d *document) Stage(string, string)          {}
func (d *document) Fetching(string, int64, int64) {}
func (d *document) Step(report.Step)              {}
func (d *document) Hook(string, hook.Result)      {}
func (d *document) Note(string)                   {}

// End prints the report. If it cannot be encoded, the command fails with the reason: see program.printed. An error of a
// write is reported with the end of the command, as that of any command.
func (d *document) End(r *report.Report) {
	if d.p.JSON(r) == nil {
		return
	}
	if _, err := json.Marshal(r); err != nil {
		d.p.unprinted = fmt.Errorf("the report cannot be written as JSON: %w", err)
	}
}
