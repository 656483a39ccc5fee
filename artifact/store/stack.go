package store

import "golang.org/x/time/rate"

// Settings configure Stack. The zero value is right for an ordinary run.
type Settings struct {
	Retry   RetryPolicy
	Timeout TimeoutPolicy
	Limiter *rate.Limiter // bytes per second of the whole run, from NewLimiter; nil means no limit
	Host    *rate.Limiter // bytes per second of this store's host
	Observe func(Request) // called after every request, retries included; may be nil
}

// Stack wraps a store in the usual decorators. From the outside in:
//
//	Retry    handles every failure of the layers below, including timeouts
//	Limit    counts repeated bytes too, since they use bandwidth too
//	Timeout  is inside Limit, so that waiting for the limit is not a stall
//	Observe  is innermost and sees each request that is really sent
func Stack(s Store, with Settings) Store {
	if with.Observe != nil {
		s = Observe(s, with.Observe)
	}
	s = Timeout(s, with.Timeout.inTotal(with.Retry.Total))
	s = Limit(Limit(s, with.Host), with.Limiter)
	return Retry(s, with.Retry)
}
