package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// TestLongNameOfAHostPadsNoOtherLine checks that the lines of a list are not as wide as the longest name.
func TestLongNameOfAHostPadsNoOtherLine(t *testing.T) {
	var out bytes.Buffer
	p := &program{IO: cli.IO{Out: &out}}
	long := strings.Repeat("b", 250)
	if err := p.printHosts([]knownHost{{Host: "a", Key: "k"}, {Host: long, Key: "k"}}, false); err != nil {
		t.Fatal(err)
	}
	if line, _, _ := strings.Cut(out.String(), "\n"); len(line) > 100 || !strings.Contains(out.String(), long) {
		t.Errorf("the list is\n%s", &out)
	}
}
