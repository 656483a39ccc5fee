package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
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

// sweepTemporary removes what states left that were killed. Nobody else is writing, since the lock is
// held. What cannot be removed now is tried again the next time.
func (a *Agent) sweepTemporary() error {
	data, err := os.ReadFile(a.Layout.Temporary())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for line := range strings.Lines(string(data)) {
		dir, whole := strings.CutSuffix(line, "\n")
		if whole && filepath.IsAbs(dir) { // else it was cut while it was written, and nothing was made there
			errs = append(errs, durable.Sweep(dir))
		}
	}
	return errors.Join(errs...)
}

// exclusive is the lock of somebody who may change the host.
type exclusive struct {
	*lock.Lock
	list  string // of directories with temporary files
	swept bool   // nothing is left in them of earlier runs
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
