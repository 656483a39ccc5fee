package exec

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// wide holds the data with which a walk runs steps in parallel.
type wide struct {
	room     chan struct{}                     // limits the number of steps that run at once
	finished chan struct{}                     // receives a value when a parallel step has ended
	after    map[*compile.Step][]*compile.Step // the earlier steps that a step names in its arguments
	beside   map[string]bool                   // by function: whether its steps may run beside others
}

// sideBySide runs steps, several at once if their functions allow it. A step waits for its requisites, for the earlier
// steps whose names are in its arguments, and, if its function cannot run in parallel, for every earlier step.
func (w *walk) sideBySide(ctx context.Context, steps []*compile.Step) {
	w.wide = &wide{room: make(chan struct{}, w.runner.Parallel), finished: make(chan struct{}, len(steps)),
		after: w.named(steps), beside: map[string]bool{}}
	left := steps
	for len(left) > 0 && !w.stopped && ctx.Err() == nil {
		blocked := w.pass(ctx, left)
		if len(blocked) == len(left) && !w.waitForParallel(ctx) {
			w.wide = nil // the steps form a cycle, which the walk in order reports
			w.steps(ctx, left)
			return
		}
		left = blocked
	}
}

// enter waits until another step may run. It returns false if the run was cancelled before: the step then does not
// begin.
func (w *wide) enter(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case w.room <- struct{}{}:
	}
	if ctx.Err() != nil {
		<-w.room
		return false
	}
	return true
}

// pass starts the steps that need not wait, and returns those that are left. It stops at a waiting step that cannot run
// in parallel.
func (w *walk) pass(ctx context.Context, steps []*compile.Step) (blocked []*compile.Step) {
	for _, s := range steps {
		if w.stopped || ctx.Err() != nil {
			return nil
		}
		switch {
		case w.running.Get(s.Tag()) != nil:
		case w.waits(s, len(blocked) > 0):
			blocked = append(blocked, s)
			if !w.beside(s) {
				return append(blocked, steps[slices.Index(steps, s)+1:]...)
			}
		default:
			w.active = map[string]bool{}
			w.step(ctx, s, 0)
			w.stopped = w.stopped || w.failsHard(s)
		}
	}
	return blocked
}

// waits reports whether a step has to wait. The argument behind is true if an earlier step waits.
func (w *walk) waits(s *compile.Step, behind bool) bool {
	if !w.beside(s) && (behind || slices.ContainsFunc(w.running.list, func(r *Result) bool { return !w.settled(r) })) {
		return true
	}
	for _, q := range s.Requisites {
		for _, t := range q.Targets {
			if q.Kind != "listen" && !w.done(t.Steps) {
				return true
			}
		}
	}
	return !w.done(w.wide.after[s])
}

func (w *walk) done(steps []*compile.Step) bool {
	return !slices.ContainsFunc(steps, func(s *compile.Step) bool {
		r := w.running.Get(s.Tag())
		return r == nil || !w.settled(r)
	})
}

// settled reports whether a result is complete, and stores it if its step has just ended.
func (w *walk) settled(r *Result) bool {
	if r.pending == nil {
		return true
	}
	select {
	case done := <-r.pending:
		w.takeOver(r, done)
		return true
	default:
		return false
	}
}

// waitForParallel waits until a parallel step has ended; it returns false if none runs.
func (w *walk) waitForParallel(ctx context.Context) bool {
	if !slices.ContainsFunc(w.running.list, func(r *Result) bool { return r.pending != nil }) {
		return false
	}
	select {
	case <-w.wide.finished:
	case <-ctx.Done():
	}
	for _, r := range w.running.list {
		if w.settled(r) {
			w.stopped = w.stopped || w.failsHard(r.Step)
		}
	}
	return true
}

// beside reports whether a step may run beside others.
func (w *walk) beside(s *compile.Step) bool {
	if w.wide == nil || s.Chunk.Has("retry") || s.Fun() == watchAction {
		return false
	}
	concurrent, known := w.wide.beside[s.Function()]
	if !known {
		resource, _ := w.runner.Modules.New(s.State(), s.Fun())
		_, concurrent = resource.(module.Concurrent)
		w.wide.beside[s.Function()] = concurrent
	}
	return concurrent
}

// named returns, for each step, the earlier steps whose names its arguments contain, and the last earlier one with the
// same state and name. Requisites take precedence over names in arguments: a step does not wait for one that requires
// it.
func (w *walk) named(steps []*compile.Step) map[*compile.Step][]*compile.Step {
	after, byName, same := map[*compile.Step][]*compile.Step{}, map[string][]*compile.Step{}, map[string]*compile.Step{}
	forward := requireLater(steps)
	for _, s := range steps {
		words := map[string]bool{}
		for key, v := range s.Chunk.All() {
			if name := value.Str(key); name != "name" && !strings.HasPrefix(name, "__") {
				collect(v, words)
			}
		}
		for word := range words {
			for _, before := range byName[plainName(word)] {
				if !forward || !needs(before, s, after, map[*compile.Step]bool{}) {
					after[s] = append(after[s], before)
				}
			}
		}
		if before := same[s.State()+" "+s.Name()]; before != nil {
			after[s] = append(after[s], before)
		}
		same[s.State()+" "+s.Name()] = s
		for name := range namesOf(s) {
			byName[name] = append(byName[name], s)
		}
	}
	return after
}

// namesOf returns the names by which arguments of other steps may refer to what a step makes: its own, and those in
// arguments that name the resource, such as the domain of a zone.
func namesOf(s *compile.Step) map[string]bool {
	names := map[string]bool{plainName(s.Name()): true}
	for _, key := range []string{"domain_name", "conn_name", "Bucket", "instance_name", "volume_name"} {
		if v, ok := s.Chunk.Value(key).(string); ok && v != "" {
			names[plainName(v)] = true
		}
	}
	if tags, ok := s.Chunk.Value("tags").(*value.Map); ok {
		if name, ok := tags.Value("Name").(string); ok && name != "" {
			names[plainName(name)] = true
		}
	}
	return names
}

// plainName returns a name without the dot at the end of a domain, which users write or leave out.
func plainName(name string) string { return strings.TrimSuffix(name, ".") }

// requireLater reports whether any step requires one that is written after it.
func requireLater(steps []*compile.Step) bool {
	seen := map[*compile.Step]bool{}
	for _, s := range steps {
		seen[s] = true
		for _, q := range s.Requisites {
			for _, t := range q.Targets {
				if slices.ContainsFunc(t.Steps, func(other *compile.Step) bool { return !seen[other] }) {
					return true
				}
			}
		}
	}
	return false
}

// needs reports whether a step waits for another one, directly or through the steps that it waits for.
func needs(s, other *compile.Step, after map[*compile.Step][]*compile.Step, seen map[*compile.Step]bool) bool {
	if seen[s] {
		return false
	}
	seen[s] = true
	next := slices.Clone(after[s])
	for _, q := range s.Requisites {
		for _, t := range q.Targets {
			if q.Kind != "listen" {
				next = append(next, t.Steps...)
			}
		}
	}
	return slices.ContainsFunc(next, func(n *compile.Step) bool { return n == other || needs(n, other, after, seen) })
}

// collect adds the strings in a value, and the words in them, to words.
func collect(v any, words map[string]bool) {
	switch v := v.(type) {
	case string:
		words[v] = true
		for word := range strings.FieldsFuncSeq(v, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
		}) {
			words[word] = true
		}
	case *value.Map:
		for key, item := range v.All() {
			collect(key, words)
			collect(item, words)
		}
	case *value.List:
		for _, item := range v.Items {
			collect(item, words)
		}
	}
}

// inOrder sorts and numbers the results in the order of the program, without those of steps that never began. The
// results of listeners, which are not in the program, follow in the order in which they ran.
func (w *walk) inOrder() {
	places := map[string]int{}
	for i, s := range w.program {
		places[s.Tag()] = i
	}
	place := func(r *Result) int {
		if i, ok := places[r.Tag()]; ok {
			return i
		}
		return len(w.program)
	}
	w.running.list = slices.DeleteFunc(w.running.list, func(r *Result) bool { return r.never })
	slices.SortStableFunc(w.running.list, func(a, b *Result) int { return place(a) - place(b) })
	for i, r := range w.running.list {
		r.RunNum = i
	}
}
