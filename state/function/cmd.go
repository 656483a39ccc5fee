package function

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cmd runs commands: the one module that acts, because nobody can tell whether a command does. Every
// command is told to the log before it runs.
type cmd struct{ *Facts }

// shared are the parameters that all of cmd.run's kin have after their own; only those that make a
// difference here are looked at.
const sharedParameters = "cwd=None, stdin=None, runas=None, group=None, shell='/bin/sh', python_shell=None, env=None, clean_env=False, " +
	"template=None, rstrip=True, umask=None, output_encoding=None, output_loglevel='debug', log_callback=None, hide_output=False, " +
	"timeout=None, reset_system_locale=True, ignore_retcode=False, saltenv=None, use_vt=False, bg=False, password=None, " +
	"encoded_cmd=False, raise_err=False, prepend_path=None, success_retcodes=None, success_stdout=None, success_stderr=None, " +
	"redirect_stderr=False, **kwargs"

func cmdTable(f *Facts) Table {
	c := cmd{f}
	signature := "cmd, " + sharedParameters
	return Table{
		"cmd.run":           Of(signature, c.run),
		"cmd.shell":         Of(signature, c.shell),
		"cmd.run_stdout":    Of(signature, c.stream("stdout")),
		"cmd.run_stderr":    Of(signature, c.stream("stderr")),
		"cmd.run_all":       Of(signature, c.all),
		"cmd.retcode":       Of(signature, c.stream("retcode")),
		"cmd.exec_code":     Of("lang, code, args=None, "+sharedParameters, c.code("stdout")),
		"cmd.exec_code_all": Of("lang, code, args=None, "+sharedParameters, c.code("")),
		"cmd.which":         Of("cmd", c.which),
		"cmd.which_bin":     Of("cmds", c.whichOf),
		"cmd.has_exec":      Of("cmd", func(name string) bool { return c.which(name) != nil }),
		"cmd.shells":        Of("", c.shells),
	}
}

// run gives what a command prints, errors included.
func (c cmd) run(ctx context.Context, a Arguments) (any, error) {
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

func (c cmd) shell(ctx context.Context, a Arguments) (any, error) {
	if a.Value("python_shell") == nil {
		a.Set("python_shell", true)
	}
	return c.run(ctx, a)
}

func (c cmd) stream(name string) func(context.Context, Arguments) (any, error) {
	return func(ctx context.Context, a Arguments) (any, error) {
		m, err := c.all(ctx, a)
		if err != nil {
			return nil, err
		}
		return m.Value(name), nil
	}
}

// code runs a program text by an interpreter that reads it from its standard input's place: a file.
func (c cmd) code(stream string) func(context.Context, Arguments) (any, error) {
	return func(ctx context.Context, a Arguments) (any, error) {
		interpreter, err := splitWords(value.Str(a.Value("lang")))
		if err != nil || len(interpreter) == 0 {
			return nil, errors.Join(err, errors.New("argument lang names no program"))
		}
		if err := c.Host.Commands.Allowed("running code by " + interpreter[0]); err != nil {
			return nil, err
		}
		file, err := c.Host.TempFor(optionalText(a.Value("runas")), "code-*", []byte(value.Str(a.Value("code"))), 0o600)
		if err != nil {
			return nil, err
		}
		defer func() { _ = c.Host.Files.Remove(file) }()
		argv := slices.Concat(interpreter, []string{file})
		more, err := texts(a.Value("args"))
		if err != nil {
			return nil, typeError("argument args: %v", err)
		}
		a.Set("cmd", value.Strings(append(argv, more...)...))
		m, err := c.all(ctx, a)
		if err != nil || stream == "" {
			return m, err
		}
		return m.Value(stream), nil
	}
}

// all runs a command and tells everything about it.
func (c cmd) all(ctx context.Context, a Arguments) (*value.Map, error) {
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
	if out.Code != 0 && !value.Truth(a.Value("ignore_retcode")) {
		c.noteRetcode(ctx, out.Code)
	}
	if value.Truth(a.Value("hide_output")) {
		out.Stdout, out.Stderr = "", ""
	}
	return outcome(out), nil
}

func succeeds(out host.Output, a Arguments) bool {
	for _, code := range commaList(a.Value("success_retcodes")) {
		if code == value.Str(out.Code) {
			return true
		}
	}
	return containsAny(out.Stdout, commaList(a.Value("success_stdout"))) || containsAny(out.Stderr, commaList(a.Value("success_stderr")))
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// tell logs a command, but not its words where its output is not to be logged either.
func (c cmd) tell(line host.Line, a Arguments) {
	what := "`" + line.Text + "`"
	if a.Value("output_loglevel") == "quiet" {
		what = "a command"
	}
	if line.RunAs != "" {
		what += " as " + line.RunAs
	}
	c.log("info", "running "+what)
}

// line makes a command line of the arguments.
func (c cmd) line(ctx context.Context, a Arguments) (host.Line, error) {
	l := host.Line{Shell: optionalText(a.Value("shell")), Dir: optionalText(a.Value("cwd")), RunAs: optionalText(a.Value("runas")),
		Path: optionalText(a.Value("prepend_path")), Clean: value.Truth(a.Value("clean_env")),
		Merge: value.Truth(a.Value("redirect_stderr")), Env: module.Environment(a.Value("env"))}
	if s := a.Value("stdin"); s != nil {
		l.Stdin = strings.ReplaceAll(value.Str(s), `\n`, "\n")
	}
	var err error
	if l.Limit, err = limit(a.Value("timeout")); err != nil {
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

// words settles what is run: a shell with a text, or a program with its arguments.
func (c cmd) words(ctx context.Context, l *host.Line, a Arguments) error {
	command := a.Value("cmd")
	inShell := value.Truth(a.Value("python_shell")) || a.Value("python_shell") == nil && c.Shell
	if argv, ok := command.(*value.List); ok {
		words, err := texts(argv)
		if err != nil || len(words) == 0 {
			return typeError("argument cmd: a command line, or a list of words, was expected")
		}
		l.Argv, l.Text = words, strings.Join(words, " ")
		return nil
	}
	text, err := text(command)
	if err != nil {
		return typeError("argument cmd: %v", err)
	}
	if template := optionalText(a.Value("template")); template != "" {
		if text, err = c.rendered(ctx, text, template); err != nil {
			return err
		}
	}
	l.Text = text
	if inShell {
		return nil
	}
	l.Argv, err = splitWords(text)
	if err == nil && len(l.Argv) == 0 {
		err = typeError("argument cmd: there is no command in it")
	}
	return err
}

func (c cmd) rendered(ctx context.Context, text, template string) (string, error) {
	if c.Render == nil {
		return "", errors.New("there is nothing to render the command with")
	}
	v, err := c.Render(ctx, render.Source{Name: ":command:", File: ":command:", Env: c.env(""), Text: text}, template, value.NewMap())
	return value.Str(v), err
}

func (c cmd) directory(l host.Line) error {
	switch {
	case l.Dir == "":
		return nil
	case !path.IsAbs(l.Dir):
		return fmt.Errorf("the working directory %s is not there", l.Dir)
	}
	return c.Host.Enterable(l.Dir, l.RunAs)
}

// unsupported refuses what would be misunderstood if it were passed over.
func unsupported(a Arguments) error {
	for name, instead := range map[string]string{"group": "use runas", "bg": "start long work as a unit"} {
		if value.Truth(a.Value(name)) {
			return diag.WithHint(fmt.Errorf("argument %s is not supported", name), "%s", instead)
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
		return nil, typeError("argument umask: an octal number above zero was expected")
	}
	return &mask, nil
}
