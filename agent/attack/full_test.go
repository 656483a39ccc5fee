//go:build attack

package attack_test

import "time"

// The full form, which `make attack` runs.
const (
	full       = true
	tries      = 20
	calls      = 1000
	callsTime  = 60 * time.Second
	rounds     = 2
	runTimeout = 2 * time.Minute
)
