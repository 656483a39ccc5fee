// Corpus-agent is the program on every host: it fetches what the host's channels name, converges
// the host, and remembers what it did.
package main

import (
	"context"
	"os"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func main() { os.Exit(Main(context.Background(), os.Args[1:], cli.Process())) }
