package host_test

import (
	"context"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestOutputIsKeptUpToALimit checks that at most 16 MiB of an output are kept in memory.
func TestOutputIsKeptUpToALimit(t *testing.T) {
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Commands.Run(context.Background(),
		host.Command{Argv: []string{"/bin/sh", "-c", "head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2"}})
	if err != nil || len(out.Stdout) != 16<<20 || len(out.Stderr) != 16<<20 {
		t.Errorf("%d and %d bytes, %v; want %d", len(out.Stdout), len(out.Stderr), err, 16<<20)
	}
}
