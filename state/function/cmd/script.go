package cmd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Acting returns the functions that run scripts of the state tree or of the host.
func Acting(f *function.Facts) function.Table {
	c := cmd{f}
	signature := "source, args=None, " + sharedParameters
	return function.Table{
		"cmd.script":         function.Of(signature, c.script),
		"cmd.script_retcode": function.Of(signature, c.scriptRetcode),
	}
}

// script copies a script to a temporary file that the user of the command can run, and runs it in a shell.
func (c cmd) script(ctx context.Context, a function.Arguments) (*value.Map, error) {
	if err := c.Host.Commands.Allowed("running a script"); err != nil {
		return nil, err
	}
	content, err := c.scriptText(ctx, a)
	if err != nil {
		return nil, err
	}
	file, remove, err := c.Host.TempFor(function.OptionalText(a.Value("runas")), "script", []byte(content), 0o700)
	if err != nil {
		return nil, err
	}
	defer func() { _ = remove() }()
	line := file
	if args := function.OptionalText(a.Value("args")); args != "" {
		line += " " + args
	}
	a.Set("cmd", line)
	a.Set("template", nil)
	a.Set("python_shell", true)
	return c.all(ctx, a)
}

func (c cmd) scriptRetcode(ctx context.Context, a function.Arguments) (any, error) {
	m, err := c.script(ctx, a)
	if err != nil {
		return nil, err
	}
	return m.Value("retcode"), nil
}

// scriptText reads a script, and renders it if the call names a template engine.
func (c cmd) scriptText(ctx context.Context, a function.Arguments) (string, error) {
	source, env := value.Str(a.Value("source")), function.OptionalText(a.Value("saltenv"))
	if !strings.HasPrefix(source, "salt://") && !path.IsAbs(source) {
		return "", diag.Download.Hint(fmt.Errorf("argument source: %q is neither salt://PATH nor an absolute path", source),
			"put the script into the state tree: salt://scripts/NAME")
	}
	read, err := c.read(source, env, a)
	if err != nil {
		return "", err
	}
	content, ok := read.(string)
	if !ok {
		return "", diag.Download.Hint(fmt.Errorf("argument source: there is no file %s", source),
			"correct the path, or put the script there")
	}
	if template := function.OptionalText(a.Value("template")); template != "" {
		return c.rendered(ctx, content, template)
	}
	if content == "" {
		return "", errors.New("argument source: the script is empty")
	}
	return content, nil
}

// read returns the text of a script, or False if there is none. Root runs and renders no script that an unprivileged
// user can change.
func (c cmd) read(source, env string, a function.Arguments) (any, error) {
	root, err := c.asRoot(function.OptionalText(a.Value("runas")))
	if err != nil {
		return nil, err
	}
	if !root && function.OptionalText(a.Value("template")) == "" {
		return c.TreeText(source, env)
	}
	text, err := c.TrustedText(source, env)
	if unsafe := new(walk.UnsafeError); errors.As(err, &unsafe) {
		return nil, diag.Exposed.Hint(fmt.Errorf("root does not run %s: %w", source, err),
			"take the script from the tree (salt://), give it to root, or name the user with runas")
	}
	return text, err
}

// asRoot reports whether a command runs with the rights of root: runas is its user, "" for the agent's.
func (c cmd) asRoot(runas string) (bool, error) {
	if runas == "" || runas == "root" {
		return true, nil
	}
	u, found, err := c.Host.Accounts.User(runas) // an unknown user is an error when the command runs
	return !found || u.UID == 0, err
}
