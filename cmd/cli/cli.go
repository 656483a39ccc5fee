// Package cli is the common part of both programs' command lines: streams that a test can replace, output as text or
// JSON, errors with hints, and exit codes.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Version is set when a release is built.
var Version = "dev"

// IO is the part of its process that a command uses.
type IO struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Getenv func(string) string
}

// Process returns the IO of the running process.
func Process() IO { return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv} }

// Shown returns the IO with streams that remove control characters from the output of all commands: names, IDs and
// output come from other parties. The returned function flushes the streams.
func (s IO) Shown() (IO, func()) {
	out, err := redact.NewWriter(s.Out, s.Color(s.Out)), redact.NewWriter(s.Err, s.Color(s.Err))
	s.Out, s.Err = out, err
	return s, func() { _ = errors.Join(out.Flush(), err.Flush()) } // errors of a closed terminal are ignored
}

// Colored lets this project's colors through to a stream of Shown that is not a terminal.
func Colored(w io.Writer) {
	if shown, ok := w.(*redact.Writer); ok {
		shown.Colours()
	}
}

// File returns the file behind a stream; nil if it is not a file. Code that writes to the file directly must pass
// text of other parties through package redact.
func File(w io.Writer) *os.File {
	for {
		switch below := w.(type) {
		case *os.File:
			return below
		case interface{ Unwrap() io.Writer }:
			w = below.Unwrap()
		default:
			return nil
		}
	}
}

// Terminal reports whether w is a terminal.
func Terminal(w io.Writer) bool {
	f := File(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// InputTerminal returns the terminal that r reads from; nil if r is not a terminal.
func InputTerminal(r io.Reader) *os.File {
	if f, is := r.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Findings prints the findings of doctor, as JSON or as text. If a check failed, the error has the exit code of that
// check.
func (s IO) Findings(found interface {
	Write(w io.Writer) error
	Err() error
}, asJSON bool) error {
	print := found.Write
	if asJSON {
		print = func(io.Writer) error { return s.JSON(found) }
	}
	if err := print(s.Out); err != nil {
		return err
	}
	return AlreadyReported(found.Err())
}

// Color reports whether output to w may have colors: only on a terminal, and not if NO_COLOR is set
// (https://no-color.org) or the terminal is a dumb one.
func (s IO) Color(w io.Writer) bool {
	return Terminal(w) && s.Getenv("NO_COLOR") == "" && s.Getenv("TERM") != "dumb"
}

// Run runs a command line and returns its exit code. SIGINT, SIGTERM and SIGHUP cancel its context;
// a second SIGINT or SIGTERM ends the process at once.
func Run(ctx context.Context, root *cobra.Command, args []string, streams IO) int {
	ctx, stop := interruptible(ctx)
	defer stop()
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(usage)
	root.SetHelpCommand(helpCommand())
	err := execute(ctx, root, args)
	code := exit.Code(err)
	if err != nil && !errors.Is(err, ErrReported) && !streams.isUnwritten(err) {
		wantsJSON, _ := root.PersistentFlags().GetBool("json")
		streams.fail(err, code, wantsJSON)
	}
	return streams.unwritten(code)
}

// execute runs a command line. Errors of cobra about its arguments become usage errors.
func execute(ctx context.Context, root *cobra.Command, args []string) error {
	if err := wrongCommand(root, args); err != nil {
		return err
	}
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return nil
	}
	return unknownCommand(root, wrongFlags(c, err))
}

// interruptible returns a context that the first terminating signal cancels. A closed session sends SIGHUP right after
// SIGTERM, which does not count as a second signal; a process that was started with SIGHUP ignored (nohup) continues.
func interruptible(ctx context.Context) (context.Context, func()) {
	asked, stopAsked := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(asked, stopAsked)
	if signal.Ignored(syscall.SIGHUP) {
		return asked, stopAsked
	}
	hung, stopHung := signal.NotifyContext(asked, syscall.SIGHUP)
	return hung, func() { stopHung(); stopAsked() }
}

// ErrReported marks an error that its command has reported already, so that only its exit code matters.
var ErrReported = errors.New("reported")

// AlreadyReported marks an error as reported.
func AlreadyReported(err error) error {
	if err == nil {
		return nil
	}
	return &reported{err}
}

type reported struct{ err error }

func (r *reported) Error() string   { return r.err.Error() }
func (r *reported) Unwrap() []error { return []error{r.err, ErrReported} }

// Args returns a check of the number of arguments, and of the names among them. Its errors are usage errors.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := saltArgument(c, args); err != nil {
			return err
		}
		if err := check(c, args); err != nil {
			return wrongArguments(c, args, err)
		}
		return checkNames(c, args)
	}
}

// fail prints an error: each of the errors that it joins, problems in files with their positions, and its hint
// below each. A hint that several errors share is printed after the last of them.
func (s IO) fail(err error, code int, asJSON bool) {
	err = walk.ExplainLoop(err)
	if asJSON {
		_ = s.JSON(failureOf(err, code))
		return
	}
	var b bytes.Buffer
	parts := diag.Parts(err)
	for i, part := range parts {
		safe := inOneLine(part)
		b.WriteString(s.label("error:") + " " + unforged(shown(safe.Replace(message(part)))) + "\n")
		for _, hint := range diag.HintsOf(part) {
			if !slices.ContainsFunc(parts[i+1:], func(later error) bool { return slices.Contains(diag.HintsOf(later), hint) }) {
				b.WriteString(shown(diag.HintLines(safe.Replace(hint))) + "\n")
			}
		}
	}
	_, _ = s.Err.Write(b.Bytes()) // an error of standard error cannot be reported
}

// SlowStore returns a function that reports, the first time it is called, that a store does not answer a request.
func (s IO) SlowStore(url string) func(request string) {
	var once sync.Once
	return func(request string) {
		once.Do(func() {
			text := fmt.Sprintf("waiting for the store %s: no answer for %s (%s)", url, store.SlowAfter, request)
			_, _ = fmt.Fprintln(s.Err, shown(text)) // the command does not depend on it
		})
	}
}

// message returns an error's text without its hints. That of a problem in a file includes the lines of the file.
func message(err error) string {
	var d *diag.Diagnostic
	if !errors.As(err, &d) {
		return exit.Text(err)
	}
	bare := *d
	bare.Hint = ""
	return bare.Text()
}

// shown returns a text that may contain output of a server or a program so that it is safe to print.
func shown(text string) string { return redact.Controls(redact.URLs(text)) }

func (s IO) label(word string) string {
	if s.Color(s.Err) {
		return "\x1b[31m" + word + "\x1b[0m"
	}
	return word
}

// failure is an error as JSON.
type failure struct {
	Error    string    `json:"error"`
	Hint     string    `json:"hint,omitempty"`
	Code     string    `json:"code,omitempty"` // of the hint; see diag.CodesOf
	Exit     int       `json:"exit_code"`
	Problems []problem `json:"problems,omitempty"` // in files of users
}

type problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"col,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Code    string `json:"code,omitempty"`
}

func failureOf(err error, code int) failure {
	hint := strings.Join(diag.AllHints(err), "\n")
	f := failure{Error: exit.Text(err), Hint: hint, Code: diag.CodesOf(hint), Exit: code}
	var list diag.List
	if errors.As(err, &list) {
		for _, d := range list {
			f.Problems = append(f.Problems, problem{d.Pos.File, d.Pos.Line, d.Pos.Col, d.Message, d.Hint,
				diag.CodesOf(d.Hint)})
		}
	}
	redact.Each(&f, redact.URLs)
	return f
}

// JSON writes a value as an indented JSON document in which control characters are escaped.
func (s IO) JSON(v any) error {
	var document bytes.Buffer
	e := json.NewEncoder(&document)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(s.Out, redact.JSON(document.String()))
	return err
}
