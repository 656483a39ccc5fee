package host

import (
	"testing"
	"time"
)

// TestACommandThatLeavesAProcessIsNotLate checks that the limit applies to the process of the command: a background
// process that holds its output open is no timeout.
func TestACommandThatLeavesAProcessIsNotLate(t *testing.T) {
	c := &commands{changed: func() {}}
	out, err := c.Run(t.Context(), Command{Argv: []string{"/bin/sh", "-c", "echo done; sleep 10 &"}, Limit: time.Second})
	if err != nil || out.TimedOut || out.Code != 0 || out.Stdout != "done\n" {
		t.Errorf("%+v, %v", out, err)
	}
}
