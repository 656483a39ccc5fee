package store

import "golang.org/x/time/rate"

// Settings are what a store is surrounded with. The zero value is what an ordinary run wants.
type Settings struct {
	Retry   RetryPolicy
	Timeout TimeoutPolicy
	Limiter *rate.Limiter // bytes per second of the whole run, from NewLimiter; nil means no limit
	Host    *rate.Limiter // bytes per second of this store's host
	Observe func(Request) // called after every request, retries included; may be nil
}

// Stack surrounds a store with the usual decorators. From the outside in:
//
//	Retry    sees every failure of the layers below, a timeout included
//	Limit    counts repeated bytes too, since they use the line too
//	Timeout  is inside Limit, so that waiting for our own limit is no stall
//	Observe  is innermost and sees each request that really goes out
func Stack(s Store, with Settings) Store {
	if with.Observe != nil {
		s = Observe(s, with.Observe)
	}
	s = Timeout(s, with.Timeout)
	s = Limit(Limit(s, with.Host), with.Limiter)
	return Retry(s, with.Retry)
}
