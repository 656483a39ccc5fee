package site

import (
	"fmt"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CheckPlace returns an error if a directory above a path of the agent's own, such as /srv, is something else: a file,
// or a link that leads to no directory. The agent sets aside only what is in the place of its own files.
func (s *Site) CheckPlace(at string) error {
	var wrong string
	for dir := filepath.Dir(at); dir != s.Layout.Path("/"); dir = filepath.Dir(dir) {
		if walk.Misplaced(dir) {
			wrong = dir // the topmost one is the cause
		}
	}
	if wrong == "" {
		return nil
	}
	return exit.WithCode(exit.Usage, misplaced(s.Layout.Inside(at), wrong))
}

// misplaced returns the error for a path above which wrong is no directory.
func misplaced(at, wrong string) error {
	const lost = "; where all below it is lost, make a new directory in its place: the next run deploys there again"
	target, err := walk.Target(wrong)
	if err != nil {
		return err
	}
	if target != "" {
		return diag.ConfigLost.Hint(fmt.Errorf("%s is a link to %s, which is not a directory, so there is no %s", wrong,
			target, at),
			"mount the file system, or correct the link (ls -ld %s), so that it leads to the directory"+lost, wrong)
	}
	return diag.ConfigLost.Hint(fmt.Errorf("%s is not a directory, so there is no %s", wrong, at),
		"move away what is there, and put the directory back: mv -T %[1]s %[1]s.damaged"+lost, wrong)
}
