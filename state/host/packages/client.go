package packages

import (
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// client runs the programs of all package managers.
type client struct {
	files    host.Files
	commands host.Commands
	lockWait time.Duration // limit of the wait for other processes that change packages
	// scoped starts commands that change packages in a systemd scope of their own, so that a package whose script
	// restarts the agent's unit does not kill its own installation.
	scoped bool
	env    *host.Environment // nil for the agent's own
}

// queryLimit is the time limit of a read of the database of a package manager, which takes much less.
const queryLimit = 5 * time.Minute

// run runs a program in an environment in which it asks no questions and all messages are English.
func (c *client) run(ctx context.Context, quiet bool, argv ...string) (host.Output, error) {
	env := c.variables("LANG=C")
	if home, _ := env.Get("HOME"); home == "" {
		env.Set("HOME", "/root")
	}
	return c.runIn(ctx, env, quiet, argv)
}

// variables returns the environment of a program, with vars, each NAME=value, on top.
func (c *client) variables(vars ...string) *host.Environment {
	env := host.NewEnvironment(host.Variables(c.env.All(), append(vars, "LC_ALL=C")...)...)
	if path, _ := env.Get("PATH"); path == "" {
		env.Set("PATH", strings.Join(host.SystemPath(), ":"))
	}
	return env
}

func (c *client) runIn(ctx context.Context, env *host.Environment, quiet bool, argv []string) (host.Output, error) {
	return c.commands.Run(ctx, host.Command{Argv: argv, Env: env.All(), Quiet: quiet, Named: true})
}

// change runs a program that changes packages, in a scope if systemd runs. While another process holds the lock, it
// retries until the wait is over.
func (c *client) change(ctx context.Context, what string, locked func(host.Output) bool, argv ...string) (host.Output,
	error) {
	if c.scoped {
		argv = append(inScope(what), argv...)
	}
	ctx, done := unhurried(ctx)
	defer done()
	return c.insist(ctx, false, locked, argv...)
}

// insist runs a program, and retries while another process holds the lock, until the wait is over.
func (c *client) insist(ctx context.Context, quiet bool, locked func(host.Output) bool, argv ...string) (host.Output,
	error) {
	start := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		out, err := c.run(ctx, quiet, argv...)
		if err != nil || out.Code == 0 || !locked(out) || time.Since(start)+pause > c.lockWait {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// waitForRPM waits until no process holds the lock of rpm's database, for which rpm itself would wait without a limit
// and without a message.
func (c *client) waitForRPM(ctx context.Context) error {
	for _, dir := range []string{"/var/lib/rpm", "/usr/lib/sysimage/rpm"} {
		if err := waitForLock(ctx, c.files, c.lockWait, dir+"/.rpm.lock"); err != nil {
			return err
		}
	}
	return nil
}

// ask runs a program that only reads. It has its own time limit, since the callers have no context.
func (c *client) ask(argv ...string) (host.Output, error) {
	ctx, cancel := context.WithTimeout(context.Background(), queryLimit)
	defer cancel()
	return c.run(ctx, true, argv...)
}

// newest returns the time of the last change of some files or directories, including their entries.
func (c *client) newest(paths ...string) time.Time {
	var last time.Time
	for _, path := range paths {
		info, err := c.files.Stat(path)
		if err != nil {
			continue
		}
		if info.Modified.After(last) {
			last = info.Modified
		}
		if !info.IsDir() {
			continue
		}
		names, _ := c.files.ReadDir(path) // a directory that cannot be read is ignored
		for _, name := range names {
			if entry, err := c.files.Stat(path + "/" + name); err == nil && entry.Modified.After(last) {
				last = entry.Modified
			}
		}
	}
	return last
}

// clue is a known kind of failure. Cause and hint may contain submatches of the pattern: $1.
type clue struct{ pattern, cause, hint string }

// whyFailed returns an error with a cause and a hint for the output of a failed program; the first clue that matches
// counts, unless the program was killed or met an error of the host. Without one, the cause is the message of the
// program.
func whyFailed(what string, out host.Output, clues []clue) error {
	if err := faultOfHost(what, "the package manager", out, roomIn(clues)); err != nil {
		return err
	}
	return orFull(out, byClues(what, out, clues))
}

func byClues(what string, out host.Output, clues []clue) error {
	text := out.Stderr + "\n" + out.Stdout
	for _, k := range clues {
		pattern := regexp.MustCompile(k.pattern)
		m := pattern.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		words := func(template string) string {
			said := string(pattern.ExpandString(nil, template, text, m))
			return redact.URLs(strings.Join(strings.Fields(said), " "))
		}
		return diag.Packages.Hint(fmt.Errorf("%s: %s", what, words(k.cause)), "%s", words(k.hint))
	}
	said := strings.TrimSpace(out.Stderr)
	if said == "" {
		said = host.LastLine(out.Stdout)
	}
	if said == "" {
		said = fmt.Sprintf("it ended with code %d", out.Code)
	}
	return fmt.Errorf("%s: %s", what, redact.URLs(host.FirstLines(said)))
}

// notUnderstood returns the error for output of a program that cannot be parsed.
func notUnderstood(program, line string) error {
	const most = 200
	line = strings.TrimSpace(line)
	if len(line) > most {
		line = line[:most] + "..."
	}
	return diag.Internal.Hint(fmt.Errorf("the output of %s is not understood: %q", program, line),
		"its version may be newer than this agent; please report it with that line")
}

// processOf returns the name of the process whose ID a lock file contains, and whether it still runs.
func (c *client) processOf(file string) (string, bool) {
	data, err := c.files.ReadFile(file)
	pid := strings.TrimSpace(string(data))
	if err != nil || !isNumber(pid) {
		return "", false
	}
	if _, err := os.Stat("/proc/" + pid); err != nil {
		return "", false
	}
	name, _ := os.ReadFile("/proc/" + pid + "/comm") // without a name, the ID is used
	return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid), true
}

// inScope returns the start of a command line that runs the following command in a systemd scope of its own. The scope
// is ordered before the unit of this run, so that a shutdown, which stops units in the opposite order, stops the run
// first; the run waits until the package manager is done.
func inScope(description string) []string {
	argv := []string{"systemd-run", "--scope", "--quiet", "--description=" + description}
	if unit := ownUnit(); unit != "" {
		argv = append(argv, "--property=Before="+unit)
	}
	return append(argv, "--")
}

// ownUnit returns the systemd unit in which this process runs, or "" if that is unknown.
func ownUnit() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	return unitOfCgroup(string(data))
}

// unitOfCgroup returns the unit in the content of /proc/PID/cgroup: the last part of the line of the unified hierarchy,
// or of that of systemd.
func unitOfCgroup(text string) string {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || parts[1] != "" && parts[1] != "name=systemd" {
			continue
		}
		if name := path.Base(parts[2]); strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope") {
			return name
		}
	}
	return ""
}

// packageGrace limits the time of a running package manager after the run was cancelled: one that is killed leaves
// packages half installed. The unit's TimeoutStopSec= is longer.
const packageGrace = 10 * time.Minute

// unhurried returns a context that is done packageGrace after ctx, so that a running package manager can finish. The
// caller must call done.
func unhurried(ctx context.Context) (own context.Context, done func()) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	host.Working(ctx, 1)
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(packageGrace, cancel)
		context.AfterFunc(own, func() { timer.Stop() })
	})
	return own, func() { stop(); cancel(); host.Working(ctx, -1) }
}
