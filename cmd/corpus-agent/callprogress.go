package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// progress prints the states of a call on standard error as they end: one line each, and on a terminal also a line
// with the running state, which the next one replaces. The result on standard output is complete without it.
type progress struct {
	mu       sync.Mutex
	terminal io.Writer // for the line that is replaced; nil if standard error is not a terminal
	width    int
	redactor *redact.Redactor
	lines    *report.Lines
	total    int // 0 if unknown
	done     int
}

// progressOn returns the progress of a call on standard error. On a terminal, states that needed no change do not
// get a line.
func progressOn(streams cli.IO) *progress {
	p := &progress{lines: &report.Lines{Out: streams.Err, Color: streams.Color(streams.Err), States: true,
		Mode: report.Terse}}
	if f := cli.File(streams.Err); f != nil && cli.Terminal(streams.Err) {
		p.terminal, p.lines.States = f, false
		p.width, _, _ = term.GetSize(int(f.Fd())) // a terminal of unknown width gets short lines
	}
	return p
}

// Redacting is part of exec.RedactorUser.
func (p *progress) Redacting(r *redact.Redactor) { p.redactor = r }

// ProgramStarted is part of exec.ProgramObserver.
func (p *progress) ProgramStarted(steps []*compile.Step) { p.total = len(steps) }

// StepStarted is part of exec.Observer.
func (p *progress) StepStarted(s *compile.Step) {
	if p.terminal == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	count := fmt.Sprint(p.done + 1)
	if p.total > 0 {
		count += fmt.Sprintf("/%d", max(p.total, p.done+1))
	}
	p.replace(fmt.Sprintf("[%s] %s %s", count, s.Function(), p.show(s.Name())))
}

// StepDone is part of exec.Observer.
func (p *progress) StepDone(result *exec.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	step := report.StepOf(result)
	redact.Each(&step, p.show)
	p.replace("")
	if step.Result == report.StepFailed || step.Duration >= time.Second {
		step.Name += fmt.Sprintf(" (%s)", step.Duration.Round(100*time.Millisecond))
	}
	p.lines.Step(step)
}

// show returns text with secrets redacted and control characters removed.
func (p *progress) show(text string) string {
	return redact.Controls(redact.URLs(p.redactor.Text(text)))
}

// replace overwrites the line with the running state.
func (p *progress) replace(text string) {
	if p.terminal == nil {
		return
	}
	text, _, _ = strings.Cut(text, "\n")
	if letters := []rune(text); len(letters) >= max(p.width, 40) {
		text = string(letters[:max(p.width, 40)-1])
	}
	_, _ = io.WriteString(p.terminal, "\r\x1b[K"+text) // errors of a closed terminal are ignored
}
