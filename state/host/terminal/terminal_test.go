package terminal

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// TestCommandsHaveTerminals checks that the streams of a command are terminals, and that its output is complete and
// keeps its line ends.
func TestCommandsHaveTerminals(t *testing.T) {
	if _, err := os.Stat("/dev/ptmx"); err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	for _, c := range []struct {
		merge       bool
		out, errors string
	}{{false, "out\n", "err\n"}, {true, "out\nerr\n", ""}} {
		var stdout, stderr bytes.Buffer
		cmd := exec.Command("/bin/sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo out; echo err >&2")
		finish, err := Attach(cmd, &stdout, &stderr, c.merge)
		if err != nil {
			t.Skipf("this user gets no terminal: %v", err)
		}
		err = cmd.Run()
		finish()
		if err != nil || stdout.String() != c.out || stderr.String() != c.errors {
			t.Errorf("merge %t: %q and %q, %v; want %q and %q", c.merge, &stdout, &stderr, err, c.out, c.errors)
		}
	}
}
