// Package remote sets up the agent on a host that ssh reaches, or on this machine.
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

// scriptOf returns the content of a script.
func scriptOf(name string) string {
	content, err := scripts.ReadFile("scripts/" + name + ".sh")
	if err != nil {
		panic(err) // the scripts are part of the program
	}
	return string(content)
}

// Host is a host that ssh reaches, or this machine.
type Host struct {
	Destination string    // of ssh, such as root@192.0.2.1
	Err         io.Writer // gets what ssh and the programs on the host print
	Here        bool      // it is this machine, on which this program runs as root; Destination is how messages name it
	Root        string    // with Here, the directory that is / for the scripts; "" for that of the machine
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
	Code int
	err  error
}

func (e *Exit) Error() string { return e.err.Error() }

// Unwrap returns the error without the code.
func (e *Exit) Unwrap() error { return e.err }

// leaveTime is how long ssh may take to end after a signal.
const leaveTime = time.Second

// quoted returns a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// command returns the command that runs a script as root on the host.
func (h Host) command(ctx context.Context, script string, args []string) *exec.Cmd {
	if h.Here {
		script = strings.Replace(script, "\nr=\n", "\nr="+quoted(h.Root)+"\n", 1)
		return exec.CommandContext(ctx, "sh", append([]string{"-c", script, "corpus-init"}, args...)...)
	}
	words := append([]string{"sh", "-c", scriptOf("elevate"), "sh", script, "corpus-init"}, args...)
	for i, word := range words {
		words[i] = quoted(word)
	}
	return exec.CommandContext(ctx, "ssh", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4", h.Destination,
		strings.Join(words, " "))
}

// run runs a script as root on the host.
func (h Host) run(ctx context.Context, doing, name string, in io.Reader, out io.Writer, args ...string) error {
	cmd := h.command(ctx, scriptOf(name), args)
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
	if h.Here && code == -1 {
		return &Exit{code, diag.Process.Hint(fmt.Errorf("%s: a signal ended the script", doing),
			"run the command again: it continues where this one ended")}
	}
	if code == -1 || code == connectionLost || code == incomplete {
		return &Exit{code, diag.SSH.Hint(fmt.Errorf("%s: the connection to %s failed or was cut", doing, h.Destination),
			"see that `ssh %s true` works; then run the command again: it continues where this one ended", h.Destination)}
	}
	if err, known := h.meanings()[code]; known {
		return &Exit{code, err}
	}
	return &Exit{code, diag.SSH.Hint(fmt.Errorf("%s on %s: exit code %d", doing, h.Destination, code),
		"the host printed the reason above; then run the command again: it continues where this one ended")}
}

// meanings returns the errors for the exit codes of the scripts.
func (h Host) meanings() map[int]error {
	to := h.Destination
	return map[int]error{
		noSudo: diag.Rights.Hint(fmt.Errorf("the account of %s is not root, and the host has no sudo", to),
			"log in as root, or install sudo on the host"),
		noRights: diag.Rights.Hint(fmt.Errorf("the account of %s may not run sudo without a password", to),
			"log in as root, or allow the account NOPASSWD in /etc/sudoers.d of the host"),
		busy: diag.Busy.Hint(fmt.Errorf("another command is setting %s up", to),
			"wait until it has ended, and run the command again"),
		otherBytes: diag.Download.Hint(fmt.Errorf("the agent on %s has another digest than that which was sent", to),
			"the copy was removed: run the command again"),
		notWritten: diag.Disk.Hint(fmt.Errorf("the agent cannot be written to /var/lib/corpus-init of %s", to),
			"see the reason above (df -h /var/lib), and run the command again"),
		notStarted: diag.Program.Hint(fmt.Errorf("the agent does not start on %s, and was not installed", to),
			"see the reason above; give the agent of the host's architecture with --agent FILE"),
		changedSince: diag.Busy.Hint(fmt.Errorf("another program has changed /etc/corpus/agent.yaml of %s meanwhile", to),
			"run the command again"),
		badSettings: diag.Config.Hint(fmt.Errorf("the agent does not accept its configuration on %s, which is unchanged", to),
			"correct what is printed above in /etc/corpus/agent.yaml there, and run the command again"),
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

// Down stops guests of the host by their units, and what would start them again.
func (h Host) Down(ctx context.Context, units []string) error {
	return h.run(ctx, "stopping the guests", "down", nil, h.Err, units...)
}

// Remove removes paths of the host, and the addresses that begin with hosts from its /etc/hosts.
func (h Host) Remove(ctx context.Context, hosts string, paths []string) error {
	return h.run(ctx, "removing the environment", "remove", nil, h.Err, append([]string{hosts}, paths...)...)
}
