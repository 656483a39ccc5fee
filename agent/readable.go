package agent

import (
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/exec"
)

// private is an observer that looks at the files of states before and after they change: whether everybody may read
// them then, as what a state reports shows both.
type private struct {
	exec.Observer
	of *run
}

func (p private) StepStarted(s *compile.Step) {
	p.of.readable.LookAt(s.Name())
	p.Observer.StepStarted(s)
}

func (p private) StepDone(r *exec.Result) {
	p.of.readable.LookAt(r.Step.Name())
	if r.Ended() {
		p.of.endIn(r.Step.Function() + " " + r.ID())
	}
	p.Observer.StepDone(r)
}

// endIn remembers the state that was ended since the run was asked to end.
func (r *run) endIn(state string) {
	r.endedMu.Lock()
	defer r.endedMu.Unlock()
	r.endedIn = state
}

// observing adds what a run does about states beside their results: the files that they change are looked at, and the
// journal gets to know which state is at work.
func (r *run) observing(o exec.Observer) exec.Observer {
	return r.undo.Observing(private{Observer: o, of: r})
}
