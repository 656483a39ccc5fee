// Corpus-agent is the program on every host: it fetches the releases that the host's channels name, converges the host,
// and records the result.
package main

import (
	"context"
	"fmt"
	"os"
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
