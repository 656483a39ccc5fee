package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// errFetchTime ends what asks the store for too long. It is a DeadlineExceeded, as stores expect.
var errFetchTime = fmt.Errorf("its time is over: %w", context.DeadlineExceeded)

// limited asks the store for no longer than a time. Where that ended it, the error names the setting, and
// says that nothing of what arrived is lost.
func (r *run) limited(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errFetchTime)
	defer cancel()
	err := do(ctx)
	if err == nil || !errors.Is(context.Cause(ctx), errFetchTime) {
		return err
	}
	if limit < r.Config.FetchTimeout {
		return diag.WithHint(fmt.Errorf("the store gave its metadata too slowly: it had %v: %w", limit, err),
			"look at the line between this host and its store; mirrors in agent.yaml help where one store is slow")
	}
	return diag.WithHint(fmt.Errorf("fetch.timeout (%v) ended the fetch: %w", limit, err),
		"what arrived is kept, and the next run goes on from there; raise fetch.timeout in agent.yaml if one run is to fetch all of it")
}
