package main

import (
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// progress shows how far a command is on standard error: in one line that is redrawn on a terminal, and otherwise in a
// line every ten seconds. It returns nil with --json, and then nothing is shown. done removes the line.
func (p *program) progress(verb string) (show func(what string, done, total int64), done func()) {
	if p.json {
		return nil, func() {}
	}
	lines := &report.Lines{Out: p.Err, Color: p.Color(p.Err)}
	if cli.Terminal(p.Err) {
		lines.Bars = report.NewBars(cli.File(p.Err))
	}
	p.above = lines.Bars
	return func(what string, done, total int64) { lines.Copying(verb, what, done, total) }, lines.Bars.Stop
}
