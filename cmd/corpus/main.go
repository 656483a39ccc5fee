// Corpus is the program for people and CI: it makes keys, builds artifacts, publishes and promotes them, and reads
// stores. It does not change the machine it runs on.
package main

import (
	"context"
	"os"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func main() {
	process.KeepFiles()
	streams := cli.Process()
	cli.Deadline(streams.Err)
	os.Exit(Main(context.Background(), os.Args[1:], streams))
}
