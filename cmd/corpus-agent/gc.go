package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// The values of GOGC with which the first garbage collection starts at a heap of 4 MB (usual) and 16 MB (early).
const (
	usual = 100
	early = 400
)

// patient delays the first garbage collection. A run that only converges allocates about 10 MB in 50 milliseconds
// and ends; four collections in that time took a fifth of its processor time. After the first collection the usual
// value is set again, so that large trees do not take more memory.
func patient() {
	if os.Getenv("GOGC") != "" {
		return // the user has set it
	}
	debug.SetGCPercent(early)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
