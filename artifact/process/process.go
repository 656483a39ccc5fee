// Package process starts programs with a safe environment, detached from the agent's terminal, and ends them with all
// their children.
//
// The agent has credentials for the store, and runs as root, often on root's terminal. The programs that it starts
// belong to states, hooks and releases, and many run as another user. None of them gets the credentials or shares the
// terminal.
package process

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// Environ returns the agent's environment as NAME=value, without the variables for the agent only. Every program that
// the agent starts with its own environment gets this one.
func Environ() []string { return Inherited(os.Environ()) }

// Clean returns the environment of a program that gets nothing of that of the agent, such as a hook, with more
// variables.
func Clean(more ...string) []string {
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8"},
		more...)
}

// Inherited returns the variables of env that a child process may have: all except credentials of stores, signing keys,
// and variables that systemd sets for the agent's own unit. It does not change env.
func Inherited(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return Private(name)
	})
}

// Private reports whether a variable is for the agent only.
func Private(name string) bool {
	if slices.Contains(harmless(), name) {
		return false
	}
	return slices.ContainsFunc(private(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// private lists the prefixes of variables that contain or locate credentials of stores and signing keys,
// and of those that systemd sets for a unit's main process (systemd.exec(5)).
func private() []string {
	return []string{
		"AWS_", "MINIO_", "MC_", "CORPUS_KEY_", "CORPUS_PASSPHRASE", "CORPUS_AGE_", "CORPUS_STORE", "CORPUS_NOTIFY_",
		"CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_", "JOURNAL_STREAM",
	}
}

// harmless lists variables with such a prefix that contain no credentials.
func harmless() []string {
	return []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_EC2_METADATA_DISABLED"}
}

// Shared reports whether a variable concerns the programs of every user. All others of the agent's environment, such as
// the tokens of the person who started a run, are not for programs that run as another user.
func Shared(name string) bool {
	return slices.Contains(harmless(), name) || slices.Contains(shared(), name) || strings.HasPrefix(name, "LC_")
}

func shared() []string {
	return []string{
		"PATH", "LANG", "LANGUAGE", "TZ", "TERM", "CORPUS_RUN", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
		"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
	}
}

// Detach prepares a command, before it is started, to run in a new session and process group. It then has no
// controlling terminal, so it cannot insert input into that of the agent (TIOCSTI), and its process ID is that of the
// group for [Signal].
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

// Signal sends a signal to a command that [Detach] prepared, and to all processes in its group. It does nothing for a
// command that was not started.
func Signal(cmd *exec.Cmd, signal syscall.Signal) error {
	if cmd.Process == nil {
		return nil
	}
	return syscall.Kill(-cmd.Process.Pid, signal)
}
