package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Lines tells a run in lines of text: nothing when nothing changed, one line for each change, and
// everything about a failure.
type Lines struct {
	Out     io.Writer
	Color   bool
	Verbose bool // stages, and everything about every state
	States  bool // states that changed nothing too, as Salt's state_verbose
	Mode    Mode // how much of a state; "" for Mixed
	Always  bool // a closing line even when nothing changed, for a person who waits for one
	Bars    *Bars
	Now     func() time.Time // the clock; nil means time.Now

	fetches map[string]*pace
	told    bool
}

// Mode is how much is told of a state, in the words of Salt's state_output.
type Mode string

// The modes. Whatever the mode, a state that changed nothing has at most a line.
const (
	Full    Mode = "full"    // everything
	Terse   Mode = "terse"   // a line, also for one that failed
	Mixed   Mode = "mixed"   // a line, and everything about one that failed
	Changes Mode = "changes" // everything about one that changed something or failed
)

// Colours of the words at the start of lines.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// line prints a line that starts with a word in colour.
func (l *Lines) line(color, word, format string, args ...any) {
	l.told = true
	if l.Color {
		word = "\x1b[" + color + "m" + word + "\x1b[0m"
	}
	text := word + " " + fmt.Sprintf(format, args...) + "\n"
	l.Bars.above(l.Out, text)
}

// Begin is part of Sink.
func (l *Lines) Begin(*Report) {}

// Stage is part of Sink.
func (l *Lines) Stage(name, detail string) {
	if l.Verbose {
		l.line(cyan, "stage   ", "%s", strings.TrimSpace(name+" "+detail))
		l.told = false
	}
}

// Fetching is part of Sink.
func (l *Lines) Fetching(artifact string, done, total int64) {
	l.Bars.fetching(artifact, done, total)
	if l.Bars == nil && done < total {
		l.pace(artifact, done, total)
	}
	if done == total {
		l.line(cyan, "fetched ", "%s (%s)", artifact, diag.Size(total))
	}
}

// paceEvery is how often a line says how far a fetch has come, where no bar can.
const paceEvery = 10 * time.Second

// pace is a fetch that takes long.
type pace struct{ started, told time.Time }

func (l *Lines) pace(artifact string, done, total int64) {
	now := time.Now()
	if l.Now != nil {
		now = l.Now()
	}
	p := l.fetches[artifact]
	if p == nil {
		if l.fetches == nil {
			l.fetches = map[string]*pace{}
		}
		l.fetches[artifact] = &pace{started: now, told: now}
		return
	}
	if now.Sub(p.told) < paceEvery {
		return
	}
	p.told = now
	rate := float64(done) / now.Sub(p.started).Seconds()
	left := time.Duration(float64(total-done) / rate * float64(time.Second))
	l.line(cyan, "fetching", "%s: %s of %s, %s/s, %s left", artifact, diag.Size(done), diag.Size(total), diag.Size(int64(rate)), diag.Elapsed(left))
}

// Step is part of Sink.
func (l *Lines) Step(s Step) {
	for _, w := range s.Warnings {
		l.line(yellow, "warning ", "%s %s: %s", s.Function, s.Name, w)
	}
	switch {
	case s.Result == StepFailed:
		l.failed(s)
	case s.Result == StepSkipped:
		l.line(yellow, "skipped ", "%s %s: %s", s.Function, short(s.Name), strings.TrimPrefix(s.Comment, "skipped: "))
	case s.Result == StepPending:
		l.line(yellow, "would   ", "%s %s%s%s", s.Function, short(s.Name), always(s), l.detail(s))
	case s.Changes.Len() > 0:
		l.line(green, "changed ", "%s %s%s%s", s.Function, short(s.Name), always(s), l.detail(s))
	case l.Verbose || l.States:
		l.line(cyan, "ok      ", "%s %s", s.Function, short(s.Name))
	}
}

// always marks a state that acts at every run.
func always(s Step) string {
	if s.Always {
		return " (always)"
	}
	return ""
}

func (l *Lines) failed(s Step) {
	l.line(red, "FAILED  ", "%s %s (%s in %s)", s.Function, short(s.Name), s.ID, s.SLS)
	if l.Mode == Terse && !l.Verbose {
		return
	}
	l.indented(s.Comment)
	l.indented(ChangesOf(s.Changes))
	if s.Hint != "" {
		l.indented("hint: " + s.Hint)
	}
}

func (l *Lines) indented(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if strings.TrimSpace(line) != "" {
			l.Bars.above(l.Out, "         "+line)
		}
	}
}

// detail is what changed, below the line when there is much of it.
func (l *Lines) detail(s Step) string {
	text := ChangesOf(s.Changes)
	if text == "" || !l.Verbose && l.Mode != Full && l.Mode != Changes {
		return ""
	}
	return "\n         " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n         ")
}

// Hook is part of Sink.
func (l *Lines) Hook(stage string, r hook.Result) {
	if stage == HealthStage {
		l.probe(r)
		return
	}
	if stage == UnitsStage {
		l.unit(r)
		return
	}
	name := r.Name
	if r.Release != "" {
		name += " of " + r.Release
	}
	if r.Error != "" {
		l.line(red, "FAILED  ", "%s hook %s: %s", stage, name, r.Error)
		l.indented(r.Output)
		return
	}
	l.line(green, "hook    ", "%s %s (%s)", stage, name, diag.Elapsed(r.Duration))
	if l.Verbose {
		l.indented(r.Output)
	}
}

func (l *Lines) unit(r hook.Result) {
	action, rest, _ := strings.Cut(r.Name, " ")
	switch {
	case r.Error != "":
		l.line(red, "FAILED  ", "%s", r.Error)
	case action != service.Left && action != service.Kept:
		l.line(green, "unit    ", "%s %s (%s)", rest, action, diag.Elapsed(r.Duration))
	case l.Verbose:
		l.line(cyan, "unit    ", "%s", r.Name)
	}
}

func (l *Lines) probe(r hook.Result) {
	if r.Error != "" {
		l.line(red, "FAILED  ", "health %s: %s", r.Name, r.Error)
		return
	}
	l.line(green, "healthy ", "%s (%s)", r.Name, diag.Elapsed(r.Duration))
}

// Note is part of Sink.
func (l *Lines) Note(text string) { l.line(yellow, "note    ", "%s", text) }

// End is part of Sink.
func (l *Lines) End(r *Report) {
	l.Bars.stop()
	if !l.told && !l.Always && !l.Verbose && r.Error == "" {
		return
	}
	if r.Error != "" && r.States.Total == 0 {
		return // the error says it all
	}
	color := green
	if r.Exit != 0 {
		color = red
	}
	word := string(r.Outcome)
	switch {
	case r.Test && r.Command == "rollback" && r.Exit == 0 && r.To != nil && r.From != nil && r.To.Same(*r.From):
		word = "dry run, nothing was done, would stay on"
	case r.Test && r.Command == "rollback" && r.Exit == 0:
		word = "dry run, nothing was done, would go back to"
	case r.Test && r.Outcome == Converged:
		word = "dry run"
	case r.Test:
		word = "dry run, " + word
	case r.Outcome == RolledBack:
		word += " to"
	}
	l.line(color, word+":", "%s in %s", r.summary(), diag.Elapsed(r.Duration()))
}

// summary is the run in one line.
func (r *Report) summary() string {
	c := r.States
	parts := []string{plural(c.Total, "state")}
	for _, p := range []struct {
		n    int
		word string
	}{{c.Changed, "changed"}, {c.Pending, "would change"}, {c.Failed, "failed"}, {c.Skipped, "skipped"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	if c.Always > 0 {
		parts = append(parts, fmt.Sprintf("%d of them always", c.Always))
	}
	text := strings.Join(parts, ", ")
	if about := r.About(); about != nil && r.Command != "converge" {
		text = about.String() + "; " + text
	}
	return text
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// short is a name that fits a line: the first line of a command, and not more of it than is read.
func short(name string) string {
	const most = 100
	first, rest, _ := strings.Cut(strings.TrimSpace(name), "\n")
	if r := []rune(first); len(r) > most {
		first, rest = string(r[:most]), "..."
	}
	if rest != "" {
		first += " ..."
	}
	return first
}

// ChangesOf are the changes of a step as text: a diff as it is, anything else name by name.
func ChangesOf(changes *value.Map) string {
	var b strings.Builder
	for name, v := range changes.All() {
		text := value.Str(v)
		if m, ok := v.(*value.Map); ok && m.Has("old") && m.Has("new") {
			text = fmt.Sprintf("%s -> %s", value.Str(m.Value("old")), value.Str(m.Value("new")))
		}
		if strings.Contains(text, "\n") {
			fmt.Fprintf(&b, "%s:\n%s\n", value.Str(name), strings.TrimRight(text, "\n"))
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", value.Str(name), text)
	}
	return b.String()
}
