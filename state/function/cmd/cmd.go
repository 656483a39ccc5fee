// Package cmd implements cmd.*: commands that templates and module.run start. These are the only functions of
// templates that may change the host, since the effect of a command cannot be known. Each command is logged before
// it runs.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cmd runs commands.
type cmd struct{ *function.Facts }

// sharedParameters are the parameters that cmd.run and its variants have after their own. Those without a meaning
// here are ignored.
const sharedParameters = "cwd=None, stdin=None, runas=None, group=None, shell='/bin/sh', python_shell=None, " +
	"env=None, clean_env=False, " +
	"template=None, rstrip=True, umask=None, output_encoding=None, output_loglevel='debug', log_callback=None, " +
	"hide_output=False, " +
	"timeout=None, reset_system_locale=True, ignore_retcode=False, saltenv=None, use_vt=False, bg=False, password=None, " +
	"encoded_cmd=False, raise_err=False, prepend_path=None, success_retcodes=None, success_stdout=None, " +
	"success_stderr=None, " +
	"redirect_stderr=False, **kwargs"

// Functions returns the functions of cmd that templates may call.
func Functions(f *function.Facts) function.Table {
	c := cmd{f}
	signature := "cmd, " + sharedParameters
	return function.Table{
		"cmd.run":           function.Of(signature, c.run),
		"cmd.shell":         function.Of(signature, c.shell),
		"cmd.run_stdout":    function.Of(signature, c.stream("stdout")),
		"cmd.run_stderr":    function.Of(signature, c.stream("stderr")),
		"cmd.run_all":       function.Of(signature, c.all),
		"cmd.retcode":       function.Of(signature, c.stream("retcode")),
		"cmd.exec_code":     function.Of("lang, code, args=None, "+sharedParameters, c.code("stdout")),
		"cmd.exec_code_all": function.Of("lang, code, args=None, "+sharedParameters, c.code("")),
		"cmd.which":         function.Of("cmd", c.which),
		"cmd.which_bin":     function.Of("cmds", c.whichOf),
		"cmd.has_exec":      function.Of("cmd", func(name string) bool { return c.which(name) != nil }),
		"cmd.shells":        function.Of("", c.shells),
	}
}

// run returns the output of a command, standard error included.
func (c cmd) run(ctx context.Context, a function.Arguments) (any, error) {
	a.Set("redirect_stderr", true)
	m, err := c.all(ctx, a)
	if err != nil {
		return nil, err
	}
	if value.Truth(a.Value("raise_err")) && m.Value("retcode") != 0 && !value.Truth(a.Value("ignore_retcode")) {
		return nil, fmt.Errorf("the command ended with code %v", m.Value("retcode"))
	}
	return m.Value("stdout"), nil
}

func (c cmd) shell(ctx context.Context, a function.Arguments) (any, error) {
	if a.Value("python_shell") == nil {
		a.Set("python_shell", true)
	}
	return c.run(ctx, a)
}

func (c cmd) stream(name string) func(context.Context, function.Arguments) (any, error) {
	return func(ctx context.Context, a function.Arguments) (any, error) {
		m, err := c.all(ctx, a)
		if err != nil {
			return nil, err
		}
		return m.Value(name), nil
	}
}

// code runs the text of a program with an interpreter, from a temporary file.
func (c cmd) code(stream string) func(context.Context, function.Arguments) (any, error) {
	return func(ctx context.Context, a function.Arguments) (any, error) {
		interpreter, err := value.SplitWords(value.Str(a.Value("lang")))
		if err != nil || len(interpreter) == 0 {
			return nil, errors.Join(err, errors.New("argument lang does not name a program"))
		}
		if err := c.Host.Commands.Allowed("running code by " + interpreter[0]); err != nil {
			return nil, err
		}
		file, remove, err := c.Host.TempFor(function.OptionalText(a.Value("runas")), "code",
			[]byte(value.Str(a.Value("code"))), 0o600)
		if err != nil {
			return nil, err
		}
		defer func() { _ = remove() }()
		argv := slices.Concat(interpreter, []string{file})
		more, err := function.Texts(a.Value("args"))
		if err != nil {
			return nil, function.TypeError("argument args: %v", err)
		}
		a.Set("cmd", value.Strings(append(argv, more...)...))
		m, err := c.all(ctx, a)
		if err != nil || stream == "" {
			return m, err
		}
		return m.Value(stream), nil
	}
}

// all runs a command and returns everything about it.
func (c cmd) all(ctx context.Context, a function.Arguments) (*value.Map, error) {
	line, err := c.line(ctx, a)
	if err != nil {
		return nil, err
	}
	c.tell(line, a)
	out, err := c.Host.Shell(ctx, line)
	if err != nil {
		return nil, err
	}
	if value.Truth(a.Value("rstrip")) {
		out.Stdout, out.Stderr = value.StripRight(out.Stdout), value.StripRight(out.Stderr)
	}
	if out.TimedOut {
		out.Code = 1
		out.Stdout, out.Stderr = fmt.Sprintf("%s : Timed out after %g seconds", line.Text, line.Limit.Seconds()), ""
	}
	if succeeds(out, a) {
		out.Code = 0
	}
	noted := out.Code
	if value.Truth(a.Value("ignore_retcode")) {
		noted = 0
	}
	c.NoteRetcode(ctx, noted)
	if value.Truth(a.Value("hide_output")) {
		out.Stdout, out.Stderr = "", ""
	}
	return function.CommandResult(out), nil
}

func succeeds(out host.Output, a function.Arguments) bool {
	for _, code := range function.CommaList(a.Value("success_retcodes")) {
		if code == value.Str(out.Code) {
			return true
		}
	}
	return containsAny(out.Stdout, function.CommaList(a.Value("success_stdout"))) ||
		containsAny(out.Stderr, function.CommaList(a.Value("success_stderr")))
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// tell logs a command. Its arguments are left out if its output must not be logged.
func (c cmd) tell(line host.Line, a function.Arguments) {
	what := "`" + line.Text + "`"
	if a.Value("output_loglevel") == "quiet" {
		what = "a command"
	}
	if line.RunAs != "" {
		what += " as " + line.RunAs
	}
	c.WriteLog("info", "running "+what)
}

// line returns the command line that the arguments describe.
func (c cmd) line(ctx context.Context, a function.Arguments) (host.Line, error) {
	l := host.Line{Shell: function.OptionalText(a.Value("shell")), Dir: function.OptionalText(a.Value("cwd")),
		RunAs: function.OptionalText(a.Value("runas")),
		Path:  function.OptionalText(a.Value("prepend_path")), Clean: value.Truth(a.Value("clean_env")),
		Merge: value.Truth(a.Value("redirect_stderr")), Env: module.Environment(a.Value("env"))}
	if s := a.Value("stdin"); s != nil {
		l.Stdin = strings.ReplaceAll(value.Str(s), `\n`, "\n")
	}
	var err error
	if l.Limit, err = function.Timeout(a.Value("timeout")); err != nil {
		return l, err
	}
	if l.Umask, err = umask(a.Value("umask")); err != nil {
		return l, err
	}
	if err := unsupported(a); err != nil {
		return l, err
	}
	if err := c.words(ctx, &l, a); err != nil {
		return l, err
	}
	return l, c.directory(l)
}

// words sets the command to run: a command line for a shell, or a program with arguments.
func (c cmd) words(ctx context.Context, l *host.Line, a function.Arguments) error {
	command := a.Value("cmd")
	inShell := value.Truth(a.Value("python_shell")) || a.Value("python_shell") == nil && c.Shell
	if argv, ok := command.(*value.List); ok {
		words, err := function.Texts(argv)
		if err != nil || len(words) == 0 {
			return function.TypeError("argument cmd: a command line, or a list of words, was expected")
		}
		l.Argv, l.Text = words, strings.Join(words, " ")
		return nil
	}
	text, err := function.Text(command)
	if err != nil {
		return function.TypeError("argument cmd: %v", err)
	}
	if template := function.OptionalText(a.Value("template")); template != "" {
		if text, err = c.rendered(ctx, text, template); err != nil {
			return err
		}
	}
	l.Text = text
	if inShell {
		return nil
	}
	l.Argv, err = value.SplitWords(text)
	if err == nil && len(l.Argv) == 0 {
		err = function.TypeError("argument cmd: there is no command in it")
	}
	return err
}

func (c cmd) rendered(ctx context.Context, text, template string) (string, error) {
	if c.Render == nil {
		return "", errors.New("no template renderer is available for the command")
	}
	v, err := c.Render(ctx, render.Source{Name: ":command:", File: ":command:", Env: c.Environment(""), Text: text},
		template, value.NewMap())
	return value.Str(v), err
}

func (c cmd) directory(l host.Line) error {
	switch {
	case l.Dir == "":
		return nil
	case !path.IsAbs(l.Dir):
		return fmt.Errorf("the working directory %s does not exist", l.Dir)
	}
	return c.Host.Enterable(l.Dir, l.RunAs)
}

// unsupported returns an error for arguments that must not be ignored silently.
func unsupported(a function.Arguments) error {
	for name, instead := range map[string]string{"group": "use runas", "bg": "start long work as a unit"} {
		if value.Truth(a.Value(name)) {
			return diag.Call.Hint(fmt.Errorf("argument %s is not supported", name), "%s", instead)
		}
	}
	return nil
}

func umask(v any) (*int, error) {
	if v == nil {
		return nil, nil
	}
	n, err := value.ParseInt(value.Str(v), 8)
	mask, ok := n.(int)
	if err != nil || !ok || mask <= 0 || mask > 0o777 {
		return nil, function.TypeError("argument umask: an octal number above zero was expected")
	}
	return &mask, nil
}
