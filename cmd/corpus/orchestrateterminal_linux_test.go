package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a terminal: the person's, and the command's.
func openTerminal(t *testing.T) (person, command *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	command, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Close() })
	return person, command
}

// answering types a text once the terminal shows a question, and returns what the terminal shows until then.
func answering(person *os.File, text string) <-chan string {
	shown := make(chan string, 1)
	go func() {
		screen, one := "", make([]byte, 1)
		for !strings.Contains(screen, "[y/N] ") {
			if _, err := person.Read(one); err != nil {
				break
			}
			screen += string(one)
		}
		_, _ = person.WriteString(text)
		shown <- screen
	}()
	return shown
}

// TestOrchestrateConfirmsDeletions checks that deletions are confirmed on a terminal, that only y and yes confirm, and
// that what was typed before the question does not.
func TestOrchestrateConfirmsDeletions(t *testing.T) {
	o := newOrchestrator(t, tree())
	o.run(0, "shop", "--set", "service_instance=testing")
	for _, one := range []struct {
		before, answer string
		code, left     int
	}{{"", "\n", 2, 2}, {"", "no\n", 2, 2}, {"", "\x04", 2, 2}, {"", "yikes\n", 2, 2}, {"", "y n\n", 2, 2},
		{"y\n", "no\n", 2, 2}, {"", "Yes\n", 0, 1}} {
		person, command := openTerminal(t)
		if _, err := person.WriteString(one.before); err != nil {
			t.Fatal(err)
		}
		shown := answering(person, one.answer)
		o.runWith(command, command, one.code, "gone")
		if len(o.queues.all) != one.left {
			t.Errorf("the answer %q after %q leaves %v", one.answer, one.before, o.queues.all)
		}
		if screen := <-shown; !strings.Contains(screen, "This deletes boto_sqs shop-testing-a. Continue?") {
			t.Errorf("the terminal shows %q", screen)
		}
	}
}
