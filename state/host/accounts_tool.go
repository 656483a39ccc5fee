package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// tool is one call of the system's own account tools.
type tool struct {
	argv     []string
	stdin    string
	subjects []Subject // what it replaces
	paths    []string  // that it works on: see Command.Paths
}

// toolLimit is how long a tool may take. userdel -r of a large home is the slowest.
const toolLimit = 10 * time.Minute

// run carries out a change: what it replaces is recorded, others who are changing accounts are waited
// for, and what was read before is forgotten.
func (a *accounts) run(ctx context.Context, t tool) error {
	name := t.argv[0]
	if err := a.Allowed(name); err != nil {
		return err
	}
	path, ok := which(a.files, name)
	if !ok {
		return diag.WithHint(fmt.Errorf("%s is not installed", name), "install the package that has it: passwd, or shadow-utils")
	}
	if err := replacing(a.recorder, t.subjects...); err != nil {
		return err
	}
	if err := awaitLock(ctx, a.files); err != nil {
		return err
	}
	defer a.forget()
	out, err := a.commands.Run(ctx, Command{Argv: append([]string{path}, t.argv[1:]...), Env: toolEnvironment(), Stdin: t.stdin, Limit: toolLimit, Named: true, Paths: t.paths})
	switch {
	case err != nil:
		return err
	case out.TimedOut:
		return fmt.Errorf("%s did not end in %s", name, toolLimit)
	case out.Code != 0:
		return &ToolError{Tool: name, Code: out.Code, Text: firstLines(out.Stderr)}
	}
	return nil
}

func userSubject(name string) Subject  { return Subject{KindUser, name} }
func groupSubject(name string) Subject { return Subject{KindGroup, name} }

// ToolError is a tool that refused. What it says goes into Text; passwords never do, since no tool
// repeats what it reads.
type ToolError struct {
	Tool string
	Code int
	Text string
}

func (e *ToolError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("%s ended with code %d", e.Tool, e.Code)
	}
	return e.Text
}

// Hint says what the tool's code means for people. The codes are those of useradd(8) and its kin.
func (e *ToolError) Hint() string {
	if os.Geteuid() != 0 && e.lacksRights() {
		return "changing the system takes root"
	}
	switch e.Tool + " " + number(e.Code) {
	case "useradd 1", "usermod 1", "userdel 1", "useradd 10", "usermod 10", "userdel 10", "groupadd 10", "groupmod 10", "groupdel 10",
		"chage 15", "chpasswd 1":
		return "look whether /etc can be written and has room, and whether another tool holds /etc/passwd.lock or /etc/group.lock"
	case "useradd 4", "usermod 4":
		return "choose another uid, or set unique: False"
	case "groupadd 4", "groupmod 4":
		return "choose another gid, or set non_unique: True"
	case "useradd 9":
		return "set gid to the group of that name to take it as the user's own"
	case "useradd 12":
		return "the account is there, its home is not: look at the directory above it, or set createhome: False"
	case "useradd 3", "usermod 3", "useradd 19", "groupadd 3":
		return "correct the argument it names"
	case "usermod 8":
		return "end the user's processes first"
	case "userdel 8":
		return "end the user's processes first, or set force: True to remove it all the same"
	case "groupdel 8":
		return "give the users that have it as their own group another one first"
	}
	return ""
}

// lacksRights reports whether the tool says that its user may not do this.
func (e *ToolError) lacksRights() bool {
	text := strings.ToLower(e.Text)
	for _, words := range []string{"permission denied", "not permitted", "are you root", "be root", "only root", "superuser", "authentication"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return text == ""
}

// firstLines is a tool's message on one line.
func firstLines(text string) string {
	lines := strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '\n' })
	return strings.Join(lines[:min(len(lines), 3)], "; ")
}

// exited tells whether an error is a tool's, with the given code.
func exited(err error, code int) bool {
	var e *ToolError
	return errors.As(err, &e) && e.Code == code
}
