package agent

import (
	"os"
	"path/filepath"
	"strings"

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
	p.of.lookAt(s.Name())
	p.Observer.StepStarted(s)
}

func (p private) StepDone(r *exec.Result) {
	p.of.lookAt(r.Step.Name())
	if r.Ended() {
		p.of.endIn(r.Step.Function() + " " + r.ID())
	}
	p.Observer.StepDone(r)
}

// endIn remembers the state that was ended since the run was asked to end.
func (r *run) endIn(state string) {
	r.seenMu.Lock()
	defer r.seenMu.Unlock()
	r.endedIn = state
}

// lookAt remembers of a file that is there whether everybody may read it.
func (r *run) lookAt(file string) {
	if !filepath.IsAbs(file) {
		return
	}
	if _, err := os.Stat(r.Layout.Path(file)); err != nil {
		return
	}
	public := readableByAll(r.Layout.Root, r.Layout.Path(file))
	shown := r.record.Show(file) // as the report names it
	r.seenMu.Lock()
	defer r.seenMu.Unlock()
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	before, looked := r.seen[shown]
	r.seen[shown] = public && (before || !looked)
}

// everybodys reports whether everybody may read a file, and could whenever the run looked at it. Of a file that no
// state is named after, and that a way back may have replaced, that is not known.
func (r *run) everybodys(file string) bool {
	r.seenMu.Lock()
	public, looked := r.seen[file]
	r.seenMu.Unlock()
	if looked {
		return public
	}
	return filepath.IsAbs(file) && r.report.Undo == nil && readableByAll(r.Layout.Root, r.Layout.Path(file))
}

// readableByAll reports whether every user may read a file: it, and each directory on the way to it from the root.
func readableByAll(root, file string) bool {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false
	}
	file, err = filepath.EvalSymlinks(file)
	if err != nil || !strings.HasPrefix(file, strings.TrimSuffix(root, "/")+"/") {
		return false
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return false
	}
	for dir := filepath.Dir(file); len(dir) > len(root); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}
