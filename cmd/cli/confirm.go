package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Asks reports whether Confirm can ask: a person reads the error stream and types the input.
func (s IO) Asks() bool { return Terminal(s.Err) && InputTerminal(s.In) != nil }

// Confirm asks a question on the terminal, and reports whether the answer is yes: y or yes, in any case. Every other
// answer is no, and so are the end of the input and the end of ctx. An answer that was typed before the question
// does not count.
func (s IO) Confirm(ctx context.Context, question string) bool {
	if !s.Asks() {
		return false
	}
	// What was typed before is no answer to a question that was not on the screen.
	_ = unix.IoctlSetInt(int(InputTerminal(s.In).Fd()), unix.TCFLSH, unix.TCIFLUSH)
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(s.In).ReadString('\n')
		answers <- answer
	}()
	select {
	case <-ctx.Done():
		return false
	case answer := <-answers:
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "y" || answer == "yes"
	}
}
