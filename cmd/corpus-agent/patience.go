package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Go collects garbage for the first time at 4 MB with usual, and at 16 MB with early.
const (
	usual = 100
	early = 400
)

// patient lets the first collection of garbage wait. A run that only converges makes some 10 MB of it in
// 50 milliseconds and ends; to collect four times on the way took a fifth of its processor time. From the
// first collection on all is as usual, so that large trees take no more memory than they did.
func patient() {
	if os.Getenv("GOGC") != "" {
		return // somebody has decided
	}
	debug.SetGCPercent(early)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
