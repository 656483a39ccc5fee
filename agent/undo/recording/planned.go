package recording

import (
	"path"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// stepsAhead is the number of coming steps whose possible changes the journal records once something changes.
const stepsAhead = 64

// ProgramStarted implements exec.ProgramObserver: it receives all steps of the run.
func (o *observer) ProgramStarted(steps []*compile.Step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.steps, o.at, o.given = steps, map[*compile.Step]int{}, 0
	for i, s := range steps {
		o.at[s] = i
	}
	o.recorder.SetPlan(o.ahead)
}

// pass records that a step has started.
func (o *observer) pass(s *compile.Step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i, ok := o.at[s]; ok {
		o.next = i + 1
	}
}

// ahead returns the paths that the next steps will create, according to their arguments. A wrong guess costs one line
// in the journal.
func (o *observer) ahead() (all []journal.Planned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := min(o.next+stepsAhead, len(o.steps))
	for ; max(o.next, o.given) < end; o.given++ {
		o.given = max(o.next, o.given)
		s := o.steps[o.given]
		if p := makes(s, o.host); p != "" {
			all = append(all, journal.Planned{Step: o.named(s), Path: p})
		}
	}
	return all
}

// makes returns the path that a step creates, if its arguments say so, and else "".
func makes(s *compile.Step, h *host.Host) string {
	switch s.Function() {
	case "file.managed",
		"file.directory",
		"file.symlink",
		"file.touch",
		"file.serialize",
		"file.append",
		"file.prepend",
		"file.recurse":
		return s.Name()
	case "ssh_auth.present", "ssh_auth.manage":
		user, _ := s.Chunk.Value("user").(string)
		if u, ok, err := h.Accounts.User(user); err == nil && ok && s.Chunk.Value("config") == nil {
			return path.Join(u.Home, ".ssh/authorized_keys")
		}
	}
	return ""
}
