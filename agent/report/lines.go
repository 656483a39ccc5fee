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

// Lines prints a run as lines of text: nothing when nothing changed, one line for each change, and the details of each
// failure.
type Lines struct {
	Out     io.Writer
	Color   bool
	Verbose bool // print stages, and the details of every state
	States  bool // print states that changed nothing too, as Salt's state_verbose
	Mode    Mode // how much to print of a state; "" means Mixed
	Always  bool // print a closing line even when nothing changed, for a person who waits for one
	Bars    *Bars
	Now     func() time.Time // the clock; nil means time.Now

	fetches map[string]*pace
	printed bool
}

// Mode is how much is printed of a state, in the words of Salt's state_output.
type Mode string

// The modes. In every mode, a state that changed nothing has at most one line.
const (
	Full    Mode = "full"    // the details of each state
	Terse   Mode = "terse"   // one line per state, also for one that failed
	Mixed   Mode = "mixed"   // one line per state, and the details of those that failed
	Changes Mode = "changes" // the details of states that changed something or failed
)

// Colors of the words at the start of lines.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// line prints a line that starts with a colored word.
func (l *Lines) line(color, word, format string, args ...any) {
	l.printed = true
	if l.Color {
		word = "\x1b[" + color + "m" + word + "\x1b[0m"
	}
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	l.Bars.Above(l.Out, word+" "+strings.ReplaceAll(text, "\n", "\n"+indent)+"\n")
}

// indent begins each further line of a text, so that no line of a program or a file name looks like one of the agent.
const indent = "         "

// Begin implements Sink.
func (l *Lines) Begin(*Report) {}

// Stage implements Sink.
func (l *Lines) Stage(name, detail string) {
	if l.Verbose {
		l.line(cyan, "stage   ", "%s", strings.TrimSpace(name+" "+detail))
		l.printed = false
	}
}

// Fetching implements Sink.
func (l *Lines) Fetching(artifact string, done, total int64) {
	l.copying("fetching", artifact, artifact, done, total)
	if done == total {
		l.line(cyan, "fetched ", "%s (%s)", artifact, diag.Size(total))
	}
}

// Copying shows the progress of a copy of many bytes, such as an upload. verb says what is done.
func (l *Lines) Copying(verb, what string, done, total int64) {
	l.copying(verb, what, verb+" "+what, done, total)
}

// copying shows progress on the bar by one name, or in lines, which start with a verb.
func (l *Lines) copying(verb, what, onBar string, done, total int64) {
	l.Bars.fetching(onBar, done, total)
	if l.Bars == nil && done < total {
		l.pace(verb, what, done, total)
	}
}

// paceEvery is the interval of lines about the progress of a fetch if no bar can be drawn.
const paceEvery = 10 * time.Second

// pace has the time at which a fetch began, and that of its last line.
type pace struct{ started, printed time.Time }

func (l *Lines) pace(verb, what string, done, total int64) {
	now := time.Now()
	if l.Now != nil {
		now = l.Now()
	}
	p := l.fetches[verb+what]
	if p == nil {
		if l.fetches == nil {
			l.fetches = map[string]*pace{}
		}
		l.fetches[verb+what] = &pace{started: now, printed: now}
		return
	}
	if now.Sub(p.printed) < paceEvery {
		return
	}
	p.printed = now
	rate := float64(done) / now.Sub(p.started).Seconds()
	left := time.Duration(float64(total-done) / rate * float64(time.Second))
	l.line(cyan, fmt.Sprintf("%-8s", verb), "%s: %s of %s, %s/s, %s left",
		what, diag.Size(done), diag.Size(total), diag.Size(int64(rate)), diag.Elapsed(left))
}

// Step implements Sink.
func (l *Lines) Step(s Step) {
	for _, w := range s.Warnings {
		l.line(yellow, "warning ", "%s %s: %s", s.Function, short(s.Name), w)
	}
	switch {
	case s.Result == StepFailed:
		l.failed(s)
	case s.Result == StepSkipped:
		l.line(yellow, "skipped ", "%s %s: %s", s.Function, short(s.Name), strings.TrimPrefix(s.Comment, "skipped: "))
	case s.UnknownReason() != "":
		l.line(yellow, "unknown ", "%s %s: %s", s.Function, short(s.Name), s.UnknownReason())
	case s.Result == StepPending:
		l.line(yellow, "would   ", "%s %s%s%s", s.Function, short(s.Name), always(s), l.detail(s))
	case s.Changes.Len() > 0:
		l.line(green, "changed ", "%s %s%s%s", s.Function, short(s.Name), always(s), l.detail(s))
	case l.Verbose || l.States:
		l.line(cyan, "ok      ", "%s %s", s.Function, short(s.Name))
	}
}

// always returns the mark of a state that acts at every run, or "".
func always(s Step) string {
	if s.Always {
		return " (always)"
	}
	return ""
}

func (l *Lines) failed(s Step) {
	if l.Mode == Terse && !l.Verbose {
		l.line(red, "FAILED  ", "%s %s (%s in %s): %s", s.Function, short(s.Name), s.ID, s.SLS, short(s.Comment))
		return
	}
	l.line(red, "FAILED  ", "%s %s (%s in %s)", s.Function, short(s.Name), s.ID, s.SLS)
	l.indented(s.Comment)
	l.indented(ChangesOf(s.Changes))
	if s.Hint != "" {
		l.indented(diag.HintLines(s.Hint))
	}
}

func (l *Lines) indented(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if strings.TrimSpace(line) != "" {
			l.Bars.Above(l.Out, indent+line)
		}
	}
}

// detail returns the changes of a state, for the lines below its own, or "" if they are not to be printed.
func (l *Lines) detail(s Step) string {
	text := ChangesOf(s.Changes)
	if text == "" || !l.Verbose && l.Mode != Full && l.Mode != Changes {
		return ""
	}
	return "\n" + text
}

// Hook implements Sink.
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

// Note implements Sink.
func (l *Lines) Note(text string) { l.line(yellow, "note    ", "%s", text) }

// End implements Sink.
func (l *Lines) End(r *Report) {
	l.Bars.Stop()
	if !l.printed && !l.Always && !l.Verbose && r.Error == "" {
		return
	}
	if r.Error != "" && r.States.Total == 0 {
		return // the caller prints the error
	}
	color := green
	if r.Exit != 0 {
		color = red
	}
	l.line(color, r.outcomeWords()+":", "%s in %s", r.summary(), diag.Elapsed(r.Duration()))
}

// outcomeWords returns the outcome of the run in words, to be followed by its summary.
func (r *Report) outcomeWords() string {
	switch {
	case r.Test && r.Command == "rollback" && r.Exit == 0 && r.To != nil && r.From != nil && r.To.Same(*r.From):
		return "dry run, nothing was done, would stay on"
	case r.Test && r.Command == "rollback" && r.Exit == 0:
		return "dry run, nothing was done, would go back to"
	case r.Test && r.Outcome == Converged:
		return "dry run"
	case r.Test:
		return "dry run, " + string(r.Outcome)
	case r.Excused:
		return string(Converged) + ", with failures"
	case r.Outcome == RolledBack:
		return string(r.Outcome) + " to"
	}
	return string(r.Outcome)
}

// summary returns the run in one line.
func (r *Report) summary() string {
	c := r.States
	parts := []string{diag.Count(c.Total, "state")}
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

// short cuts a name to one line of at most 100 characters.
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

// ChangesOf formats the changes of a step: a diff as it is, everything else as "name: value". A name is one line.
func ChangesOf(changes *value.Map) string {
	var b strings.Builder
	for name, v := range changes.All() {
		name, text := strings.ReplaceAll(value.Str(name), "\n", `\n`), value.Str(v)
		if m, ok := v.(*value.Map); ok && m.Has("old") && m.Has("new") {
			text = fmt.Sprintf("%s -> %s", value.Str(m.Value("old")), value.Str(m.Value("new")))
		}
		if strings.Contains(text, "\n") {
			fmt.Fprintf(&b, "%s:\n%s\n", name, strings.TrimRight(text, "\n"))
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", name, text)
	}
	return b.String()
}
