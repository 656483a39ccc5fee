package host

import (
	"testing"
	"time"
)

// The limit of a command is that of its own process: one that it left in the background holds its output, and nothing
// else.
func TestACommandThatLeavesAProcessIsNotLate(t *testing.T) {
	c := &commands{changed: func() {}}
	out, err := c.Run(t.Context(), Command{Argv: []string{"/bin/sh", "-c", "echo done; sleep 10 &"}, Limit: time.Second})
	if err != nil || out.TimedOut || out.Code != 0 || out.Stdout != "done\n" {
		t.Errorf("%+v, %v", out, err)
	}
}
