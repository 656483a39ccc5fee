package accounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// tool is one call of the system's own account tools.
type tool struct {
	argv     []string
	stdin    string
	subjects []host.Subject // the subjects that it replaces
	paths    []string       // the paths that it works on: see Command.Paths
}

// run makes a change. It records the subjects that are replaced, waits for other processes that change accounts, and
// drops the cached accounts.
func (a *Accounts) run(ctx context.Context, t tool) error {
	name := t.argv[0]
	if err := a.Allowed(name); err != nil {
		return err
	}
	path, ok := host.Which(a.files, name)
	if !ok {
		return diag.Program.Hint(fmt.Errorf("%s is not installed", name),
			"install the package that has it: passwd, or shadow-utils")
	}
	if err := host.Record(a.recorder, t.subjects...); err != nil {
		return err
	}
	if err := awaitLock(ctx, a.files); err != nil {
		return err
	}
	defer a.Forget()
	out, err := a.commands.Run(ctx, host.Command{Argv: append([]string{path}, t.argv[1:]...), Env: host.ToolEnvironment(),
		Stdin: t.stdin, Limit: host.ToolLimit, Named: true, Paths: t.paths})
	switch {
	case err != nil:
		return err
	case out.TimedOut:
		return fmt.Errorf("%s did not end in %s", name, host.ToolLimit)
	case out.Code != 0:
		return &host.ToolError{Tool: name, Code: out.Code, Text: host.FirstLines(out.Stderr)}
	}
	return nil
}

func userSubject(name string) host.Subject  { return host.Subject{Kind: host.KindUser, Name: name} }
func groupSubject(name string) host.Subject { return host.Subject{Kind: host.KindGroup, Name: name} }

// exited reports whether an error is a *ToolError with the given code.
func exited(err error, code int) bool {
	var e *host.ToolError
	return errors.As(err, &e) && e.Code == code
}
