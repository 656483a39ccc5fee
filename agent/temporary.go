package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// temporary writes down a directory in which states are about to make temporary files, so that
// whoever runs after a power cut finds what they left. Where it cannot be written down, the worst
// that can come of it is a file too many.
func (a *Agent) temporary(dir string) {
	f, err := os.OpenFile(a.Layout.Temporary(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, err = f.WriteString(dir + "\n")
	_ = errors.Join(err, f.Sync(), f.Close())
}

// inJournal starts a line that names a journal: temporary files are beside what its newest run replaced.
const inJournal = "journal "

// temporaryBeside is temporary for a run with a journal. That names most directories anyway, and one
// word of it takes the disk less time than a line for each.
func (r *run) temporaryBeside(recorder *journal.Recorder) func(dir string) {
	var once sync.Once
	return func(dir string) {
		if !recorder.ChangedIn(r.Layout.Inside(dir)) {
			r.temporary(dir)
			return
		}
		once.Do(func() { r.temporary(inJournal + r.journal().Dir) })
	}
}

// sweepTemporary removes what states left that were killed. Nobody else is writing, since the lock is
// held. What cannot be removed now is tried again the next time.
func (a *Agent) sweepTemporary() error {
	data, err := walk.ReadFile(a.Layout.Temporary())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for line := range strings.Lines(string(data)) {
		dir, whole := strings.CutSuffix(line, "\n")
		switch journal, beside := strings.CutPrefix(dir, inJournal); {
		case whole && beside:
			errs = append(errs, a.sweepBeside(journal))
		case whole && filepath.IsAbs(dir): // else it was cut while it was written, and nothing was made there
			errs = append(errs, a.sweepSafely(a.Layout.Inside(dir)))
		}
	}
	return errors.Join(errs...)
}

// sweepBeside sweeps the directories that a journal names.
func (a *Agent) sweepBeside(dir string) error {
	dirs, err := journal.Journal{Dir: dir}.Dirs()
	errs := []error{err}
	for _, dir := range dirs {
		errs = append(errs, a.sweepSafely(dir))
	}
	return errors.Join(errs...)
}

// sweepSafely removes temporary files from a directory of the host, which may be a user's. A user who has put a link in its
// place since keeps what is there.
func (a *Agent) sweepSafely(dir string) error {
	root, err := a.safely()
	if err != nil {
		return err
	}
	defer root.Close()
	d, err := root.OpenDir(dir)
	var unsafe *walk.UnsafeError
	if errors.As(err, &unsafe) || err != nil && unstable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.ReadDir()
	errs := []error{err}
	for _, name := range names {
		if strings.HasPrefix(name, walk.TempPrefix) {
			errs = append(errs, d.RemoveAll(name))
		}
	}
	return errors.Join(errs...)
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
