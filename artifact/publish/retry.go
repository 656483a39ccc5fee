package publish

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Attempts is the maximum number of attempts at a change while others publish at the same time.
const Attempts = 20

// Retry calls try, which reads the store and the keys and then changes the store, until no other publisher
// interferes with it. A lost race shows in one of two ways: the store refuses the write, or the store and the keys that
// were read do not belong together, since a rotation replaced some of them in between.
func (p *Publisher) Retry(ctx context.Context, try func() error) error {
	var last error
	for attempt := range Attempts {
		err := try()
		if !errors.Is(err, store.ErrPrecondition) && !mayBeRace(err, last) {
			return err
		}
		last = err
		if err := Pause(ctx, attempt); err != nil {
			return err
		}
	}
	return diag.Busy.Hint(errors.New("others kept publishing at the same time"), "run the command again")
}

// mayBeRace reports whether an error is one that a rotation beside this command can cause. If it occurs twice in a row,
// with the same keys and versions, it is not a race.
func mayBeRace(err, last error) bool {
	var short *Short
	var unaccepted *Unaccepted
	var made *Made
	if errors.As(err, &made) {
		return false
	}
	if !errors.As(err, &short) && !errors.As(err, &unaccepted) && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return last == nil || err.Error() != last.Error()
}

// Pause waits for a random time that grows with each attempt.
func Pause(ctx context.Context, attempt int) error {
	longest := min(time.Second, 10*time.Millisecond<<attempt)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(longest)):
		return nil
	}
}
