package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync/atomic"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// refuseUnknown adds middleware that fails a request, before it is sent, if it refers to a resource that the run was to
// make and did not make.
func refuseUnknown(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("refuse what is not known", func(ctx context.Context,
		in middleware.InitializeInput,
		next middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
		if text, err := json.Marshal(in.Parameters); err == nil && bytes.Contains(text, []byte(Later)) {
			return out, m, diag.Resource.Hint(errors.New("it refers to a resource that this run did not make"),
				"correct what failed before it, and run it again")
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

// patient retries requests that AWS throttles or that fail in an outage. It does not retry a server that cannot be
// reached and has not answered before: its address is wrong, or there is no network.
type patient struct {
	sdk.RetryerV2
	answered *atomic.Bool
}

// retryer returns a retryer that sends a request at most 10 times. It does not use the SDK's common limit for the
// retries of all requests: when AWS throttles a run with many resources, its requests slow down, and none of them fails
// because others used up the retries.
func (c *Cloud) retryer() sdk.Retryer {
	adaptive := retry.NewAdaptiveMode(func(o *retry.AdaptiveModeOptions) {
		o.StandardOptions = append(o.StandardOptions, func(s *retry.StandardOptions) { s.RateLimiter = ratelimit.None })
	})
	return patient{retry.AddWithMaxAttempts(adaptive, 10).(sdk.RetryerV2), &c.answered}
}

// IsErrorRetryable implements aws.Retryer.
func (p patient) IsErrorRetryable(err error) bool {
	return p.RetryerV2.IsErrorRetryable(err) && (p.answered.Load() || !unreachable(err))
}

// GetAttemptToken implements aws.RetryerV2.
func (p patient) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	release, err := p.RetryerV2.GetAttemptToken(ctx)
	if err != nil {
		return release, err
	}
	return func(err error) error {
		if !unreachable(err) && ctx.Err() == nil {
			p.answered.Store(true)
		}
		return release(err)
	}, nil
}

// unreachable reports whether an error says that no connection could be made.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
