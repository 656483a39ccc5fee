package cli

import (
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// endWithin is how long a command with a Deadline may run after a signal.
const endWithin = 1500 * time.Millisecond

// more is how much longer a command may run; see ExtendDeadline.
var more atomic.Int64

// ExtendDeadline lets the command run so much longer after a signal. It is for commands that complete and report what
// they began.
func ExtendDeadline(by time.Duration) { more.Store(int64(by)) }

// Deadline ends the process with exit.Interrupted if it still runs 1.5 seconds after SIGINT, SIGTERM or SIGHUP: a
// system call that hangs, and the removal of a large tree, do not notice that the context is cancelled. It is for a
// program that leaves nothing half done when it is killed; the agent, which rolls back, has no such deadline.
func Deadline(stderr io.Writer) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		signal.Notify(asked, syscall.SIGHUP)
	}
	go func() {
		<-asked
		signal.Stop(asked) // a second signal ends the process at once
		time.Sleep(endWithin)
		if extra := time.Duration(more.Load()); extra > 0 {
			_, _ = io.WriteString(stderr, "interrupted: the command ends once what it began is done, at the latest in "+
				extra.String()+"; interrupt it again to end it now\n")
			time.Sleep(extra)
		}
		_, _ = io.WriteString(stderr,
			"error: interrupted; the command did not end in time and was killed\n"+
				"hint: the next command removes its temporary files\n")
		os.Exit(exit.Interrupted)
	}()
}
