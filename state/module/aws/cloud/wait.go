package cloud

import (
	"context"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Soon is how long to wait at most for AWS to show a change that it has just made.
const Soon = 2 * time.Minute

// WaitFor calls ready until it returns true or an error, for at most longest: AWS does not show everywhere at once what
// was just made or deleted. what names the condition in the error.
func WaitFor(ctx context.Context, what string, longest time.Duration,
	ready func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for pause := 200 * time.Millisecond; ; pause = min(pause*3/2, 10*time.Second) {
		ok, err := ready(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return diag.Timeout.Hint(fmt.Errorf("waiting until %s: %w", what, ctx.Err()),
				"run it again: what is done already stays unchanged")
		case <-time.After(pause):
		}
	}
}
