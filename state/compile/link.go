package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// kinds returns the kinds of requisites, in the order in which a run evaluates them.
func kinds() []string {
	return []string{"require", "require_any", "watch", "watch_any", "prereq", "onfail", "onfail_any", "onfail_all",
		"onchanges", "onchanges_any", "prerequired"}
}

// link finds the steps that requisites name, and records the steps that are certain to fail as problems.
func (p *Program) link(vocabulary Vocabulary) {
	index := newIndex(p.Steps)
	for _, s := range p.Steps {
		s.tag = s.Tag()
		if (s.Chunk.Has("watch") || s.Chunk.Has("watch_any")) && !vocabulary.Watches(s.State()) {
			s.demote("watch", "require")
			s.demote("watch_any", "require_any")
		}
		for _, kind := range kinds() {
			if list, ok := s.Chunk.Value(kind).(*value.List); ok {
				s.Requisites = append(s.Requisites, Requisite{Kind: kind, Targets: index.targets(list)})
			}
		}
	}
	p.noteProblems(vocabulary, index)
}

// demote converts a watch to a require, if the state has no watch action.
func (s *Step) demote(from, to string) {
	list, ok := s.Chunk.Value(from).(*value.List)
	if !ok {
		return
	}
	s.Chunk.Delete(from)
	if known, ok := s.Chunk.Value(to).(*value.List); ok {
		known.Items = append(known.Items, list.Items...)
		return
	}
	s.Chunk.Set(to, list)
}

// Targets returns the targets of one kind of requisite.
func (s *Step) Targets(kind string) ([]Target, bool) {
	for _, r := range s.Requisites {
		if r.Kind == kind {
			return r.Targets, true
		}
	}
	return nil, false
}

// index finds steps by ID, name and SLS. Each glob is matched against all steps once.
type index struct {
	steps  []*Step
	byName map[string][]*Step // by ID and by name
	bySLS  map[string][]*Step
	globs  map[string][]*Step
	asked  int // number of missing names that were compared with all others
}

func newIndex(steps []*Step) *index {
	x := &index{steps: steps, byName: map[string][]*Step{}, bySLS: map[string][]*Step{}, globs: map[string][]*Step{}}
	for _, s := range steps {
		id, name := s.ID(), s.Name()
		x.byName[id] = append(x.byName[id], s)
		if name != id {
			x.byName[name] = append(x.byName[name], s)
		}
		x.bySLS[s.SLS()] = append(x.bySLS[s.SLS()], s)
	}
	return x
}

func (x *index) targets(list *value.List) []Target {
	var targets []Target
	for _, item := range list.Items {
		state, name := "id", item
		if _, ok := item.(string); !ok {
			state, name, _ = single(item)
		}
		if name == nil {
			continue // as in Salt, a requisite without targets is ignored
		}
		t := Target{State: withoutDot(state), Name: value.Str(name)}
		t.Steps = x.find(t)
		targets = append(targets, t)
	}
	return targets
}

func (x *index) find(t Target) []*Step {
	var found []*Step
	switch {
	case strings.ContainsAny(t.Name, "*?["):
		found = x.glob(t)
	case t.State == "sls":
		return x.bySLS[t.Name]
	default:
		found = x.byName[t.Name]
	}
	if t.State == "id" || t.State == "sls" {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(s *Step) bool { return s.State() != t.State })
}

func (x *index) glob(t Target) []*Step {
	key := t.String()
	if found, ok := x.globs[key]; ok {
		return found
	}
	var found []*Step
	for _, s := range x.steps {
		if t.State == "sls" && Match(t.Name, s.SLS()) || t.State != "sls" &&
			(Match(t.Name, s.Name()) || Match(t.Name, s.ID())) {
			found = append(found, s)
		}
	}
	x.globs[key] = found
	return found
}

// noteProblems adds a problem for each step that is certain to fail when the program runs.
func (p *Program) noteProblems(vocabulary Vocabulary, x *index) {
	for _, s := range p.Steps {
		if !vocabulary.Has(s.State(), s.Fun()) {
			p.noteUnknownFunction(s, vocabulary)
		}
		for _, r := range s.Requisites {
			for i, t := range r.Targets {
				if len(t.Steps) == 0 {
					r.Targets[i].Lost = p.Problems.Add(s.At(r.Kind), "%s of %s: there is no %s", r.Kind, s.ID(),
						t).WithHint(diag.Requisite, x.suggest(t))
				}
			}
		}
		p.noteUnreadTargets(s, x)
		p.noteName(s)
	}
	p.noteCycles()
}

// noteUnreadTargets adds a problem for each missing target of listen and listen_in, and for each bare name in use or an
// _in requisite that no step has, which compilation otherwise ignores. The targets are not patterns.
func (p *Program) noteUnreadTargets(s *Step, x *index) {
	for _, key := range []string{"listen", "listen_in", "require_in", "watch_in", "onfail_in", "onchanges_in", "prereq_in",
		"use", "use_in"} {
		list, _ := s.Chunk.Value(key).(*value.List)
		if list == nil {
			continue
		}
		for _, item := range list.Items {
			if _, bare := item.(string); !bare && !strings.HasPrefix(key, "listen") {
				continue // the compiler reports it
			}
			for _, t := range x.targets(value.NewList(item)) {
				if !x.exact(t) {
					p.Problems.Add(s.At(key), "%s of %s: there is no %s", key, s.ID(), t).WithHint(diag.Requisite, x.suggest(t))
				}
			}
		}
	}
}

// exact reports whether a step has the ID or name of a target. It does not treat the name as a pattern.
func (x *index) exact(t Target) bool {
	return slices.ContainsFunc(x.byName[t.Name], func(s *Step) bool { return t.State == "id" || t.State == s.State() })
}

// noteName adds a problem for a name that is a list or a mapping, since a run uses the ID instead.
func (p *Program) noteName(s *Step) {
	if s.misnamed == nil {
		return
	}
	p.Problems.Add(s.At("name"), "the name of %s is %s, and a string was expected", s.ID(), value.Repr(s.misnamed)).
		WithHint(diag.SLS, "write it as one string, or each of several names below `- names:`")
}

// noteUnknownFunction adds a problem if the state function does not exist.
func (p *Program) noteUnknownFunction(s *Step, vocabulary Vocabulary) {
	why := UnknownFunction(s.State(), s.Fun(), vocabulary)
	p.Problems.Add(s.Pos, "%s of %s: %v", s.Function(), s.ID(), why).KeepHint(diag.HintOf(why))
}

// UnknownFunction returns an error that says why a state function does not exist, with similar names as its hint.
func UnknownFunction(state, fun string, vocabulary Vocabulary) error {
	if why := vocabulary.Refuses(state); why != nil {
		return why
	}
	return module.Unknown(state+"."+fun, vocabulary.Functions())
}

// suggestions is the number of missing names that are compared with all others. If more are missing, the problem is not
// a typing mistake.
const suggestions = 20

func (x *index) suggest(t Target) string {
	var known []string
	if x.asked++; x.asked <= suggestions {
		known = x.known(t)
	}
	if hint := diag.DidYouMean(t.Name, known); hint != "" {
		return hint
	}
	if same := x.byName[t.Name]; len(same) > 0 {
		return fmt.Sprintf("%s is declared as a state of %s", t.Name, same[0].State())
	}
	return "include the SLS that declares it, or correct the name"
}

// known returns the names to suggest for a missing target.
func (x *index) known(t Target) (names []string) {
	for _, s := range x.steps {
		switch {
		case t.State == "sls":
			names = append(names, s.SLS())
		case t.State == "id" || s.State() == t.State:
			names = append(names, s.ID(), s.Name())
		}
	}
	return names
}

// noteCycles reports each group of steps that wait for one another.
func (p *Program) noteCycles() {
	const (
		unseen = iota
		open
		done
	)
	mark := map[*Step]int{}
	var path []*Step
	var visit func(s *Step)
	visit = func(s *Step) {
		mark[s] = open
		path = append(path, s)
		for next := range s.waitsFor() {
			switch mark[next] {
			case unseen:
				visit(next)
			case open:
				p.reportCycle(path[slices.Index(path, next):])
			}
		}
		path = path[:len(path)-1]
		mark[s] = done
	}
	for _, s := range p.Steps {
		if mark[s] == unseen {
			visit(s)
		}
	}
}

// waitsFor yields the steps that run before this one regardless of the order.
func (s *Step) waitsFor() func(func(*Step) bool) {
	return func(yield func(*Step) bool) {
		for _, r := range s.Requisites {
			// A step with prereq runs before its target, whose prerequired names the step.
			if r.Kind == "prereq" {
				continue
			}
			for _, t := range r.Targets {
				for _, next := range t.Steps {
					if !yield(next) {
						return
					}
				}
			}
		}
	}
}

func (p *Program) reportCycle(cycle []*Step) {
	names := make([]string, 0, len(cycle)+1)
	for _, s := range cycle {
		names = append(names, s.State()+": "+s.ID())
	}
	names = append(names, names[0])
	p.Problems.Add(cycle[0].Pos, "requisites form a cycle: %s", strings.Join(names, " -> ")).
		WithHint(diag.Requisite, "remove one of these requisites")
}
