// Package process says how the agent starts other programs: with which part of its own environment, and
// detached from its terminal.
//
// The agent holds credentials for the store, and runs as root, often on a root user's terminal. The
// programs that it starts belong to states, hooks and releases, and many run as another user. None of
// them receives the credentials, and none shares the terminal.
package process

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// Environ returns the agent's environment as NAME=value, without the variables that are meant for the
// agent alone. Every program that the agent starts with its own environment starts with this one.
func Environ() []string { return Inherited(os.Environ()) }

// Inherited returns the variables of env that a child process may have: all but credentials of stores
// and signing keys, and what systemd passes to the agent's own unit. It leaves env as it is.
func Inherited(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return Private(name)
	})
}

// Private reports whether a variable is meant for the agent alone.
func Private(name string) bool {
	if slices.Contains(harmless(), name) {
		return false
	}
	return slices.ContainsFunc(private(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// private lists the beginnings of names that hold, or lead to, credentials of stores and signing keys,
// and the variables by which systemd addresses a unit's main process (systemd.exec(5)).
func private() []string {
	return []string{
		"AWS_", "MINIO_", "MC_", "CORPUS_KEY_", "CORPUS_PASSPHRASE", "CORPUS_AGE_", "CORPUS_STORE", "CORPUS_NOTIFY_",
		"CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_", "JOURNAL_STREAM",
	}
}

// harmless lists the variables that look private by their beginning, and name places only.
func harmless() []string {
	return []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_EC2_METADATA_DISABLED"}
}

// Detach gives a command, which must not have been started, a session and a process group of its own. It
// has no controlling terminal then, so it cannot type into that of the agent (TIOCSTI), and its process ID
// names the group for [Signal].
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

// Signal sends a signal to a command that [Detach] prepared, and to all processes that stayed in its group. A
// command that did not start has none.
func Signal(cmd *exec.Cmd, signal syscall.Signal) error {
	if cmd.Process == nil {
		return nil
	}
	return syscall.Kill(-cmd.Process.Pid, signal)
}
