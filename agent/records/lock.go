package records

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// look is the interval at which a process that waits for a run checks whether it has ended.
const look = 200 * time.Millisecond

// WaitUntilIdle waits until no run is in progress. In a hook of a run it returns an error instead, since the run waits
// for the hook.
func (rs *Records) WaitUntilIdle(ctx context.Context, say func(format string, args ...any)) error {
	holder, busy := lock.Taken(rs.Layout.Lock())
	switch {
	case busy && rs.Within != "":
		_, err := rs.exclusive("deploy --now")
		return err
	case busy:
		say("waiting: %v", &lock.Held{Holder: holder})
	}
	for busy {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
		_, busy = lock.Taken(rs.Layout.Lock())
	}
	return nil
}

// Lock takes the lock of the host for a run, and removes the temporary files of states of killed runs. It sets aside a
// file of another kind in the place of the lock.
func (rs *Records) Lock(ctx context.Context, command string) (*Exclusive, error) {
	held, err := rs.exclusive(command)
	if err == nil {
		held.swept = rs.SweepTemporary(ctx) == nil
	}
	return held, err
}

// exclusive takes the lock of the host for a command.
func (rs *Records) exclusive(command string) (*Exclusive, error) {
	if err := rs.CheckPlace(rs.Layout.State()); err != nil {
		return nil, err
	}
	lost, err := rs.repairLock()
	if err != nil {
		return nil, site.ExplainDisk(err)
	}
	held, err := lock.Acquire(rs.Layout.Lock(), command)
	var other *lock.Held
	if errors.As(err, &other) && rs.Within != "" {
		return nil,
			diag.Busy.Hint(fmt.Errorf("a hook or procedure of run %s calls the agent while that run holds the lock: %w",
				rs.Within, err),
				"a deploy cannot start another from inside; let a unit or the timer do it afterwards (systemctl start "+
					"--no-block corpus-agent.service)")
	}
	if errors.Is(err, os.ErrPermission) {
		return nil, diag.Rights.Hint(err, "run as root, or give a directory of your own with --root")
	}
	if err != nil {
		return nil, site.ExplainDisk(err)
	}
	return &Exclusive{Lock: held, list: rs.Layout.Temporary(), Displaced: lost}, nil
}

// Exclusive is the lock of a run or command that may change the host.
type Exclusive struct {
	*lock.Lock
	list      string   // the file that lists directories with temporary files
	swept     bool     // the temporary files of earlier runs were removed
	Displaced []string // notes about what was set aside for the lock
}

// Release releases the lock. It removes the list of directories, since a run that ends regularly leaves no temporary
// files.
func (e *Exclusive) Release() error {
	var err error
	if e.swept {
		err = os.Remove(e.list)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, e.Lock.Release())
}
