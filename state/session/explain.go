package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Explanation holds the reasons why a step runs, and why it runs at its place in the order.
type Explanation struct {
	Function string     `json:"function"`
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Declared string     `json:"declared"` // file:line:col
	SLS      string     `json:"sls"`
	Env      string     `json:"env"`
	Reached  []string   `json:"reached"` // the chain from the top file to the SLS, through includes
	Order    any        `json:"order"`   // the value of order by which it is sorted
	Place    int        `json:"place"`   // position in the run, from 1, with requisites applied
	Of       int        `json:"of"`      // the number of steps
	After    []Relation `json:"after"`   // the targets of its requisites
	Before   []Relation `json:"before"`  // the steps with requisites on it
}

// Relation is a requisite between the explained step and another.
type Relation struct {
	Kind     string `json:"kind"` // require, watch, ...
	Function string `json:"function"`
	ID       string `json:"id"`
	Declared string `json:"declared"`
	Place    int    `json:"place"`
}

// Explain explains the steps of the highstate that a word selects: an ID, a name, `state: ID`, or an SLS for all of
// its steps.
func (s *Session) Explain(ctx context.Context, word string) ([]Explanation, error) {
	high, matches, err := s.Highstate(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.Compile(high)
	if err != nil {
		return nil, err
	}
	e := &explainer{matches: matches, includes: high.Includes, steps: sequence(p.Steps), places: map[*compile.Step]int{}}
	for i, step := range e.steps {
		e.places[step] = i + 1
	}
	var all []Explanation
	for _, step := range meant(e.steps, word) {
		all = append(all, e.explain(step))
	}
	if len(all) == 0 {
		return nil,
			misuse(cmp.Or(diag.DidYouMean(word, e.words()), e.some()), "no step of this host's highstate is called %q", word)
	}
	redact.Each(&all, s.Redactor.Text)
	return all, nil
}

// sequence returns steps in the order in which a run executes them: each after the steps that it requires, and a step
// with prereq before the step that it names.
func sequence(steps []*compile.Step) []*compile.Step {
	var all []*compile.Step
	seen := map[*compile.Step]bool{}
	var visit func(s *compile.Step)
	visit = func(s *compile.Step) {
		if seen[s] {
			return
		}
		seen[s] = true
		for _, q := range s.Requisites {
			for _, t := range q.Targets {
				for _, target := range t.Steps {
					if q.Kind != "prereq" && !strings.HasPrefix(q.Kind, "listen") {
						visit(target)
					}
				}
			}
		}
		all = append(all, s)
	}
	for _, s := range steps {
		visit(s)
	}
	return all
}

// meant returns the steps that a word selects by ID or name, and if there are none, by SLS.
func meant(steps []*compile.Step, word string) []*compile.Step {
	state, id, both := strings.Cut(word, ": ")
	named := slices.DeleteFunc(slices.Clone(steps), func(s *compile.Step) bool {
		is := func(w string) bool { return s.ID() == w || s.Name() == w }
		return !is(word) && s.Tag() != word && !(both && is(id) && (s.State() == state || s.Function() == state))
	})
	if len(named) > 0 {
		return named
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s *compile.Step) bool { return s.SLS() != word })
}

type explainer struct {
	matches  []top.Match
	includes []compile.Include
	steps    []*compile.Step // as they run
	places   map[*compile.Step]int
}

func (e *explainer) words() []string {
	var words []string
	for _, s := range e.steps {
		words = append(words, s.ID(), s.Name(), s.SLS())
	}
	return words
}

// some returns a hint that names a few steps.
func (e *explainer) some() string {
	if len(e.steps) == 0 {
		return "the highstate of this host has no steps: see the top file"
	}
	const few = 3
	var ids []string
	for _, s := range e.steps[:min(len(e.steps), few)] {
		ids = append(ids, s.ID())
	}
	return fmt.Sprintf("write the ID of a state, its name or its SLS, such as %s; `corpus-agent call "+
		"state.show_highstate` has all",
		strings.Join(ids, ", "))
}

func (e *explainer) explain(s *compile.Step) Explanation {
	x := Explanation{
		Function: s.Function(), ID: s.ID(), Name: s.Name(), Declared: s.Pos.String(), SLS: s.SLS(), Env: s.Env(),
		Reached: e.reached(s.Env(), s.SLS(), map[string]bool{}), Order: s.Chunk.Value("order"), Place: e.places[s],
		Of:    len(e.steps),
		After: []Relation{}, Before: []Relation{},
	}
	if len(x.Reached) == 0 {
		x.Reached = []string{s.SLS() + " declares it, in addition to the SLS files that the top file assigns to this host"}
	}
	for _, q := range s.Requisites {
		for _, target := range named(q) {
			switch q.Kind {
			case "prereq": // the only requisite with which a step runs before the step it names
				x.Before = append(x.Before, e.relation("prereq", target))
			case "prerequired":
				x.After = append(x.After, e.relation("prereq", target))
			default:
				x.After = append(x.After, e.relation(q.Kind, target))
			}
		}
	}
	for _, other := range e.steps {
		for _, q := range other.Requisites {
			if !strings.HasPrefix(q.Kind, "prereq") && slices.Contains(named(q), s) {
				x.Before = append(x.Before, e.relation(q.Kind, other))
			}
		}
	}
	return x
}

func named(q compile.Requisite) (steps []*compile.Step) {
	for _, t := range q.Targets {
		steps = append(steps, t.Steps...)
	}
	return steps
}

func (e *explainer) relation(kind string, s *compile.Step) Relation {
	return Relation{Kind: kind, Function: s.Function(), ID: s.ID(), Declared: s.Pos.String(), Place: e.places[s]}
}

// reached returns the chain from the top file to an SLS: an assignment in the top file, and the includes that lead from
// there to the SLS. It returns nil if there is none. above has the files that are being searched, to detect cycles.
func (e *explainer) reached(env, sls string, above map[string]bool) []string {
	for _, m := range e.matches {
		if m.Env == env && slices.ContainsFunc(m.SLS, func(pattern string) bool { return compile.Match(pattern, sls) }) {
			return []string{fmt.Sprintf("the top file assigns %s to this host, in environment %s", sls, env)}
		}
	}
	above[sls] = true
	for _, i := range e.includes {
		if i.SLS != sls || i.Env != env || above[i.By] {
			continue
		}
		if way := e.reached(env, i.By, above); len(way) > 0 {
			return append(way, fmt.Sprintf("%s: %s includes %s", i.Pos, i.By, sls))
		}
	}
	return nil
}

// Text returns the explanation as text for people.
func (x Explanation) Text() string {
	var b strings.Builder
	title := x.Function + " of " + x.ID
	if x.Name != x.ID {
		title += " (" + x.Name + ")"
	}
	fmt.Fprintf(&b, "%s runs as step %d of %d\n  %-10s %s\n", title, x.Place, x.Of, "declared", x.Declared)
	for i, way := range x.Reached {
		label := ""
		if i == 0 {
			label = "because"
		}
		fmt.Fprintf(&b, "  %-10s %s\n", label, way)
	}
	fmt.Fprintf(&b, "  %-10s %s\n", "order", value.Str(x.Order))
	relations(&b, "after", x.After)
	relations(&b, "before", x.Before)
	return b.String()
}

func relations(b *strings.Builder, label string, all []Relation) {
	for _, r := range all {
		fmt.Fprintf(b, "  %-10s %s: %s of %s, step %d, %s\n", label, r.Kind, r.Function, r.ID, r.Place, r.Declared)
		label = ""
	}
}
