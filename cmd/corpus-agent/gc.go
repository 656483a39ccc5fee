package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// The values of GOGC with which the first garbage collection starts at a heap of 4 MiB (usual) and 16 MiB (late).
const (
	usual = 100
	late  = 400
)

// collectLate delays the first garbage collection. A run that only converges allocates about 10 MB in 50 milliseconds
// and ends, so it never collects, which saves a fifth of its processor time. From the first collection on, the usual
// value is set, so that large trees do not take more memory than in any Go program. GOGC in the environment wins.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(late)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
