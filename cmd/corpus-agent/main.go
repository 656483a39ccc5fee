// Corpus-agent is the program on every host: it fetches the releases that the host's channels name, converges the host,
// and records the result.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func main() {
	process.KeepFiles()
	// Files of a run have the same modes for every caller: with a private umask, services could not read them.
	syscall.Umask(0o022)
	collectLate()
	end := process.Adopt()
	code := Main(context.Background(), os.Args[1:], cli.Process())
	if left := end(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "note: programs that commands had started were still running and were ended: %q\n", left)
	}
	os.Exit(code)
}

// The values of GOGC with which the first garbage collection starts at a heap of 4 MiB (usual) and 24 MiB (late).
const (
	usual = 100
	late  = 600
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
