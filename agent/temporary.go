package agent

import (
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/site"
)

// temporaryBeside is temporary for a run with a journal. That names most directories anyway, and one
// word of it takes the disk less time than a line for each.
func (r *run) temporaryBeside(recorder *journal.Recorder) func(dir string) {
	var once sync.Once
	return func(dir string) {
		if !recorder.ChangedIn(r.Layout.Inside(dir)) {
			r.NoteTemporary(dir)
			return
		}
		once.Do(func() { r.NoteTemporary(site.InJournal + r.Journal().Dir) })
	}
}
