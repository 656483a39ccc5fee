package agent

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/lock"
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

// exclusive is the lock of somebody who may change the host.
type exclusive struct {
	*lock.Lock
	list  string   // of directories with temporary files
	swept bool     // nothing is left in them of earlier runs
	lost  []string // what stood in the place of the lock, for the report
}

// Release gives the lock up. Whoever comes this far has left no temporary file behind.
func (e *exclusive) Release() error {
	var err error
	if e.swept {
		err = os.Remove(e.list)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, e.Lock.Release())
}
