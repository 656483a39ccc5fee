// Package remote sets up the agent on a host that ssh reaches.
//
// It runs the ssh of the system, so the keys, the configuration and the known hosts of the user apply. What a host gets
// is in the standard input of ssh, never in a command line, which other users can read. A command whose connection was
// cut is repeated: it continues the copy of the agent, and replaces each file of the host at once.
package remote

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

//go:embed scripts
var scripts embed.FS

// script returns the content of a script.
func script(name string) string {
	content, err := scripts.ReadFile("scripts/" + name + ".sh")
	if err != nil {
		panic(err) // the scripts are part of the program
	}
	return string(content)
}

// Host is a host that ssh reaches.
type Host struct {
	Destination string    // of ssh, such as root@192.0.2.1
	Err         io.Writer // gets what ssh and the programs on the host print
}

// Exit codes of the scripts, besides that of ssh itself.
const (
	connectionLost = 255
	noSudo         = 90
	noRights       = 91
	busy           = 92
	incomplete     = 93
	otherBytes     = 94
	notWritten     = 95
	notStarted     = 96
	changedSince   = 97
	badSettings    = 98
)

// Exit is the error of a program on a host that ended with another exit code than 0.
type Exit struct {
	Host        string
	Code        int
	doing, hint string
}

func (e *Exit) Error() string { return e.doing }

// Hint returns what to do about it.
func (e *Exit) Hint() string { return e.hint }

// leaveTime is how long ssh may take to end after a signal.
const leaveTime = time.Second

// run runs a script as root on the host.
func (h Host) run(ctx context.Context, doing, name string, in io.Reader, out io.Writer, args ...string) error {
	words := append([]string{"sh", "-c", script("elevate"), "sh", script(name), "corpus-init"}, args...)
	for i, word := range words {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	cmd := exec.CommandContext(ctx, "ssh", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", h.Destination,
		strings.Join(words, " "))
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = process.Environ(), in, out, h.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = leaveTime
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return diag.Program.Hint(errors.New("there is no ssh on this machine"), "install openssh-client")
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed):
		return h.failed(doing, failed.ExitCode())
	}
	return err
}

// failed returns the error of a script that ended with an exit code; -1 if a signal ended ssh.
func (h Host) failed(doing string, code int) error {
	e := &Exit{Host: h.Destination, Code: code, doing: fmt.Sprintf("%s on %s: exit code %d", doing, h.Destination, code),
		hint: diag.SSH.Coded("the host printed the reason above; then " + again)}
	if code == -1 || code == connectionLost || code == incomplete {
		e.doing = fmt.Sprintf("%s: the connection to %s failed or was cut", doing, h.Destination)
		e.hint = diag.SSH.Coded(fmt.Sprintf("see that `ssh %s true` works; then %s", h.Destination, again))
	}
	if m, known := meanings()[code]; known {
		e.doing, e.hint = m.what+" ("+h.Destination+")", m.hint
	}
	return e
}

const again = "run the command again: it continues where this one ended"

// meaning is what an exit code of a script means.
type meaning struct{ what, hint string }

func meanings() map[int]meaning {
	return map[int]meaning{
		noSudo: {"the account is not root, and the host has no sudo",
			diag.Rights.Coded("log in as root, or install sudo on the host")},
		noRights: {"the account may not run sudo without a password",
			diag.Rights.Coded("log in as root, or allow the account NOPASSWD in /etc/sudoers.d of the host")},
		busy: {"another command is setting the host up", diag.Busy.Coded("wait until it has ended; then " + again)},
		otherBytes: {"the agent that arrived has another digest than that which was sent",
			diag.Download.Coded("the copy was removed: run the command again")},
		notWritten: {"the agent cannot be written to /var/lib/corpus-init of the host",
			diag.Disk.Coded("see the reason above (df -h /var/lib); then " + again)},
		notStarted: {"the agent does not start on the host, and was not installed",
			diag.Program.Coded("see the reason above; give the agent of the host's architecture with --agent FILE")},
		changedSince: {"another program has changed /etc/corpus/agent.yaml of the host meanwhile",
			diag.Busy.Coded("run the command again")},
		badSettings: {"the agent does not accept its configuration on the host, which stays as it was",
			diag.Config.Coded("correct what is printed above in /etc/corpus/agent.yaml there, and run the command again")},
	}
}

// Examine returns what a host has. digest is that of the agent that it may have a part of.
func (h Host) Examine(ctx context.Context, digest string) (Facts, error) {
	var out bytes.Buffer
	if err := h.run(ctx, "looking at the host", "examine", nil, &out, partName(digest)); err != nil {
		return Facts{}, err
	}
	return parseFacts(h.Destination, out.String(), time.Now())
}

func partName(digest string) string { return "agent-" + digest }

// Run runs the agent on the host, and prints its progress. It returns the exit code of the run.
func (h Host) Run(ctx context.Context) (int, error) {
	err := h.run(ctx, "the first run", "run", nil, h.Err)
	var ended *Exit
	if errors.As(err, &ended) && ended.Code > 0 && ended.Code < noSudo {
		return ended.Code, nil
	}
	return 0, err
}
