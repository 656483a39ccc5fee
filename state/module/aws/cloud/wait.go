package cloud

import (
	"context"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Soon is how long what was just made may take to be seen.
const Soon = 2 * time.Minute

// WaitFor asks until there is an answer, as what was just made or deleted is not seen everywhere at once.
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
			return diag.WithHint(fmt.Errorf("waiting until %s: %w", what, ctx.Err()),
				"run it again: what is done already stays unchanged")
		case <-time.After(pause):
		}
	}
}
