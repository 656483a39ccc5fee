package main

import (
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
func (d *document) End(r *report.Report)          { _ = d.p.JSON(r) }
