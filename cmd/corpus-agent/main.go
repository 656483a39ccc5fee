// Corpus-agent is the program on every host: it fetches the releases that the host's channels name, converges the
// host, and records what it did.
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

// collectLate puts off the first garbage collection until the heap has 12 MiB, where Go starts at 4. A run with nothing
// to do ends before that, so it never collects, which saves a fifth of its processor time and needs no more memory than
// collecting does. From the first collection on, the heap grows as in any Go program. GOGC in the environment wins.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(300)
	first := new([]byte)
	runtime.AddCleanup(first, func(int) { debug.SetGCPercent(100) }, 0)
}
