package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// runView is a run in the form for a page.
type runView struct {
	fleet.Run
	Class, Took, LeftText, StatesText, Omitted string
	Facts                                      []fact
	First                                      *stepView
	Steps                                      []stepView
	Log                                        []logLine
}

// stepView is a state of a run in the form for a page.
type stepView struct {
	ID, Function, Name, SLS, Result, Comment, Hint, Class, Took, Other string
	Warnings                                                           []string
	Open                                                               bool
	Diff                                                               []diffLine
}

type diffLine struct{ Class, Text string }

// logLine is a line of the log of a run.
type logLine struct {
	What, Which, Text, Took string
	Bad                     bool
}

const (
	mostSteps    = 300 // states of a run that its page shows
	mostLines    = 400 // lines of a diff
	mostLogLines = 500
	longestName  = 512 // bytes of an ID or a name
	longestWord  = 24  // bytes of an outcome or a command
)

func newRunView(r fleet.Run) runView {
	v := runView{Run: r, Class: class(r.Outcome), Took: took(r.Ended.Sub(r.Started)), LeftText: pairText(r.Left)}
	v.Outcome, v.Command, v.Error, v.Hint = word(r.Outcome), word(r.Command), shown(r.Error), shown(r.Hint)
	v.StatesText = fmt.Sprintf("%s, %d changed, %d failed", diag.Count(r.States.Total, "state"), r.States.Changed,
		r.States.Failed)
	for _, f := range []fact{{Name: "From", Text: pairText(r.From)}, {Name: "To", Text: pairText(r.To)},
		{Name: "Left", Text: v.LeftText}, {Name: "Withheld", Text: pairText(r.Withheld)},
		{Name: "Agent", Text: name(r.Agent)}} {
		if f.Text != "" {
			f.Mono = true
			v.Facts = append(v.Facts, f)
		}
	}
	steps := slices.Clone(r.Steps)
	slices.SortStableFunc(steps, func(a, b fleet.RunStep) int { return failedFirst(a) - failedFirst(b) })
	for _, s := range steps[:min(len(steps), mostSteps)] {
		v.Steps = append(v.Steps, newStepView(s))
	}
	if more := len(steps) - mostSteps; more > 0 {
		v.Omitted = fmt.Sprintf("%s more are in the report.", diag.Count(more, "state"))
	}
	if i := slices.IndexFunc(r.Steps, func(s fleet.RunStep) bool { return s.Result == "failed" }); i >= 0 {
		first := newStepView(r.Steps[i])
		v.First = &first
	}
	v.Log = logOf(r)
	return v
}

func failedFirst(s fleet.RunStep) int {
	if s.Result == "failed" {
		return 0
	}
	return 1
}

// name returns a host's text in the form for a page, shortened to a name.
func name(text string) string {
	if len(text) > longestName {
		text = strings.ToValidUTF8(text[:longestName], "") + " ..."
	}
	return shown(text)
}

// word returns a host's text in the form for a page, shortened to a word.
func word(text string) string {
	return strings.ToValidUTF8(name(text[:min(len(text), longestWord)]), "")
}

func took(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func pairText(p *ledger.Pair) string {
	if p == nil {
		return ""
	}
	return name(p.String())
}

func newStepView(s fleet.RunStep) stepView {
	v := stepView{
		ID: name(s.ID), Function: name(s.Function), Name: name(s.Name), SLS: name(s.SLS), Result: word(s.Result),
		Comment: shown(s.Comment), Hint: shown(s.Hint), Class: class(s.Result), Took: took(s.Duration),
		Open: s.Result == "failed",
	}
	for _, warning := range s.Warnings[:min(len(s.Warnings), 20)] {
		v.Warnings = append(v.Warnings, shown(warning))
	}
	v.Diff, v.Other = changes(s.Changes)
	return v
}

// changes returns the changes of a state: a diff as lines, and the rest as JSON.
func changes(data json.RawMessage) (diff []diffLine, other string) {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil || len(all) == 0 {
		return nil, ""
	}
	var text string
	if json.Unmarshal(all["diff"], &text) == nil {
		diff = lines(shown(text))
		delete(all, "diff")
	}
	if len(all) == 0 {
		return diff, ""
	}
	rest, err := json.Marshal(all)
	var indented bytes.Buffer
	if err == nil {
		err = json.Indent(&indented, rest, "", "  ")
	}
	if err != nil {
		return diff, ""
	}
	return diff, shown(indented.String())
}

func lines(diff string) (out []diffLine) {
	for line := range strings.Lines(diff) {
		if len(out) == mostLines {
			return append(out, diffLine{"at", "..."})
		}
		line = strings.TrimSuffix(line, "\n")
		kind := "same"
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
			kind = "at"
		case strings.HasPrefix(line, "+"):
			kind = "add"
		case strings.HasPrefix(line, "-"):
			kind = "del"
		}
		out = append(out, diffLine{kind, line + "\n"})
	}
	return out
}

// logOf returns the events of a run besides its states: stages, hooks, units, probes and notes.
func logOf(r fleet.Run) (out []logLine) {
	for _, s := range r.Stages {
		out = append(out, logLine{"stage", name(s.Name), shown(s.Error), took(s.Duration), s.Error != ""})
	}
	for _, stage := range slices.Sorted(maps.Keys(r.Hooks)) {
		for _, h := range r.Hooks[stage] {
			out = append(out, logLine{"hook", name(stage + "/" + h.Name), shown(h.Error), took(h.Duration), h.Error != ""})
		}
	}
	for _, u := range r.Units {
		out = append(out, logLine{"unit", name(u.Unit), shown(strings.TrimSpace(u.Action + " " + u.Error)), took(u.Duration),
			u.Error != ""})
	}
	for _, p := range r.Health {
		out = append(out, logLine{"probe", name(p.Probe), shown(p.Error), took(p.Duration), p.Error != ""})
	}
	for _, note := range r.Notes {
		out = append(out, logLine{What: "note", Text: shown(note)})
	}
	return out[:min(len(out), mostLogLines)]
}

type runPage struct {
	common
	Run runView
}

// run writes the page of a run.
func (w *writer) run(h fleet.Host, r runView) error {
	page := runPage{w.common(h.Host+" "+stamp(r.Started)+" - Fleet", "../../",
		step{h.Project, "../../project/" + h.Project + "/index.html"}, step{h.Host, "index.html"},
		step{Text: stamp(r.Started)}), r}
	return w.page(w.ctx, "host/"+h.Host+"/"+r.ID+".html", "run", page)
}
