//go:build !attack

package attack_test

import "time"

// The short form, which `go test` runs: it proves that the suite works, but does not win a narrow race.
const (
	full       = false
	tries      = 2
	calls      = 20
	callsTime  = 200 * time.Millisecond
	rounds     = 1
	runTimeout = 2 * time.Minute
)
