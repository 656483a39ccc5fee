package recording

import (
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// tooLarge is an observer of a dry run. It notes the files that the run would change and the journal would not keep,
// since they are larger than undo.file_limit.
type tooLarge struct {
	exec.Observer
	of   *Run
	host *host.Host
}

// StepDone implements exec.Observer.
func (o tooLarge) StepDone(result *exec.Result) {
	if result.Outcome == exec.Pending {
		for _, p := range changing(result) {
			o.look(p, result.Step.Function() == "file.absent", maxLooked)
		}
	}
	o.Observer.StepDone(result)
}

// changing returns the files that a step would change, according to its arguments and the changes that it predicts.
func changing(result *exec.Result) (all []string) {
	if strings.HasPrefix(result.Step.Function(), "file.") && path.IsAbs(result.Step.Name()) {
		all = append(all, result.Step.Name())
	}
	for name := range result.Predicted.All() {
		if p, ok := name.(string); ok && path.IsAbs(p) && p != result.Step.Name() {
			all = append(all, p)
		}
	}
	return all
}

// maxLooked bounds how many names of a tree are examined. The journal keeps the same number of names of a tree.
const maxLooked = 10_000

// look notes a file that is too large, and, if below is set, such files in a directory. left is how many names may
// still be examined, and look returns what remains of it. Errors are ignored, since the step reports them.
func (o tooLarge) look(p string, below bool, left int) int {
	info, err := o.host.Files.Lstat(p)
	if err != nil || left <= 0 {
		return 0
	}
	limit := o.of.Host.Config.UndoFileLimit
	switch {
	case info.Mode.IsRegular() && info.Size > limit:
		o.of.Record.Note("%s has %s, more than undo.file_limit (%s): its content is not kept, so no rollback restores it",
			p, diag.Size(info.Size), diag.Size(limit))
	case info.Mode.IsDir() && below:
		names, err := o.host.Files.ReadDir(p)
		if err != nil {
			return 0
		}
		for _, e := range names {
			left = o.look(path.Join(p, e), true, left-1)
		}
	}
	return left
}
