package host_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestTablesOfTheKernelAreParsedOncePerCommand parses a table several times: again only after a command that may have
// changed it, and each time on a host that does not learn of commands.
func TestTablesOfTheKernelAreParsedOncePerCommand(t *testing.T) {
	count := 0
	parse := func(text string) int { count++; return strings.Count(text, "\n") }
	look := func(h *host.Host, want int, when string) {
		t.Helper()
		lines, err := host.ParsedTable(h, "/proc/self/mountinfo", parse)
		if err != nil || lines == 0 || count != want {
			t.Errorf("%s: %d lines, parsed %d times, want %d: %v", when, lines, count, want, err)
		}
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	look(h, 1, "at first")
	look(h, 1, "again")
	for _, quiet := range []bool{true, false} {
		if _, err := h.Commands.Run(context.Background(), host.Command{Argv: []string{"true"}, Quiet: quiet}); err != nil {
			t.Fatal(err)
		}
		look(h, map[bool]int{true: 1, false: 2}[quiet], "after a command")
	}
	h.ForgetTables()
	look(h, 3, "after a unit has changed")
	if h, err = machine.New(host.Options{Commands: &hosttest.Scripted{T: t}}); err != nil {
		t.Fatal(err)
	}
	look(h, 4, "with other commands")
	look(h, 5, "with other commands, again")
}
