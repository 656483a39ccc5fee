package exec

import (
	"context"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// listen runs the watch actions of all listeners whose source changed, once each, in the order of their declaration.
func (w *walk) listen(ctx context.Context, steps []*compile.Step) {
	l := &listeners{walk: w, index: map[ref][]*compile.Step{}, bare: map[string]ref{}}
	for _, s := range steps {
		l.add(s.ID(), s)
		if s.Name() != s.ID() {
			l.add(s.Name(), s)
		}
	}
	for _, s := range steps {
		l.listen(s)
		l.listenIn(s)
	}
	w.stopped = false // a failure that stopped the run does not stop its listeners
	w.steps(ctx, l.actions)
	for _, lost := range l.lost {
		w.record(lost)
	}
}

// ref is a state with an ID or name.
type ref struct{ state, name string }

type listeners struct {
	walk    *walk
	index   map[ref][]*compile.Step
	bare    map[string]ref // by ID or name without a state: the last step that has it
	actions []*compile.Step
	lost    []*Result // listeners to steps that do not exist
}

func (l *listeners) add(name string, s *compile.Step) {
	r := ref{s.State(), name}
	l.index[r] = append(l.index[r], s)
	l.bare[name] = ref{s.State(), s.ID()}
}

// listen handles `listen: - file: x`: it adds the watch action of the step itself if x changed.
func (l *listeners) listen(s *compile.Step) {
	sources, _ := s.Chunk.Value("listen").(*value.List)
	if sources == nil {
		return
	}
	for _, item := range sources.Items {
		for _, source := range l.refs(item) {
			if _, ok := l.index[source]; !ok {
				l.missing(s, "listen", source)
				continue
			}
			l.act(source, []*compile.Step{s})
		}
	}
}

// listenIn handles `listen_in: - service: x`: it adds the watch action of x if the step changed.
func (l *listeners) listenIn(s *compile.Step) {
	targets, _ := s.Chunk.Value("listen_in").(*value.List)
	if targets == nil {
		return
	}
	source := ref{s.State(), s.ID()}
	for _, item := range targets.Items {
		for _, target := range l.refs(item) {
			steps, ok := l.index[target]
			if sure, _ := l.changed(source); !ok && sure {
				l.missing(s, "listen_in", target)
				continue
			}
			l.act(source, steps)
		}
	}
}

// refs returns the states that an item names. An item is {state: name}, or a bare ID or name.
func (l *listeners) refs(item any) []ref {
	if m, ok := item.(*value.Map); ok {
		var refs []ref
		for state, name := range m.All() {
			refs = append(refs, ref{value.Str(state), value.Str(name)})
		}
		return refs
	}
	if r, ok := l.bare[value.Str(item)]; ok {
		return []ref{r}
	}
	return nil
}

// act adds the watch actions of steps if the source changed or, in a dry run, may change.
func (l *listeners) act(source ref, steps []*compile.Step) {
	sure, perhaps := l.changed(source)
	if !sure && !perhaps {
		return
	}
	for _, s := range steps {
		action := s.With("sfun", s.Fun(), "fun", watchAction, compile.KeyID, "listener_"+s.ID())
		action.Requisites = nil
		l.walk.flag(action).unknown = !sure
		l.react(action, l.always(source))
		l.actions = append(l.actions, action)
	}
}

// react records whether an action reacts only to steps that act at every run. The argument again says so for one
// source; the action may have been added for other sources before.
func (l *listeners) react(action *compile.Step, again bool) {
	for _, earlier := range l.actions {
		if earlier.Tag() == action.Tag() {
			again = again && l.walk.flag(earlier).again
			l.walk.flag(earlier).again = again
		}
	}
	l.walk.flag(action).again = again
}

// always reports whether all steps of a source that changed something act at every run.
func (l *listeners) always(source ref) bool {
	return !slices.ContainsFunc(l.index[source], func(s *compile.Step) bool {
		r := l.walk.running.Get(s.Tag())
		return r != nil && (r.Outcome == Pending || r.Changes.Len() > 0) && !r.Always
	})
}

// changed reports whether a source changed or would change (sure), or may change in a real run (perhaps).
func (l *listeners) changed(source ref) (sure, perhaps bool) {
	for _, s := range l.index[source] {
		r := l.walk.running.Get(s.Tag())
		l.walk.wait(r)
		if r != nil {
			sure, perhaps = sure || r.wouldChange(), perhaps || r.isUnknown()
		}
	}
	return sure, perhaps
}

// missing records that the listen or listen_in of a step names a state that does not exist.
func (l *listeners) missing(by *compile.Step, key string, r ref) {
	at := by.At(key)
	s := &compile.Step{Pos: at, Chunk: value.NewMap(
		"state", "Listen_Error", compile.KeyID, "listen_"+r.name, "name", "listen_"+r.state, "fun", "Listen_Error",
		compile.KeySLS, by.SLS(), compile.KeyEnv, by.Env())}
	l.lost = append(l.lost, &Result{Step: s, Changes: value.NewMap(), Started: time.Now(),
		Comment: diag.At(at, "%s of %s: there is no %s: %s", key, by.ID(), r.state, r.name).Error(),
		Hint:    diag.Requisite.Coded("include the SLS that declares it, or correct the name")})
}
