package main

import (
	"flag"
	"testing"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/cmd/cli/manpages"
)

// write is the directory in which to keep the files that the test makes: go test -run TestGenerated -args -write DIR
var write = flag.String("write", "", "directory for man pages and completions")

func TestGenerated(t *testing.T) { manpages.Check(t, newRoot(cli.Process()), *write) }
