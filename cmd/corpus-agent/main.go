// Corpus-agent is the program on every host: it fetches what the host's channels name, converges
// the host, and remembers what it did.
package main

import (
	"context"
	"os"
	"syscall"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func main() {
	// What a run makes is the same whoever starts it: under a private mask, services could not read it.
	syscall.Umask(0o022)
	os.Exit(Main(context.Background(), os.Args[1:], cli.Process()))
}
