package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// options holds the arguments that all cmd states have in common.
type options struct {
	Name            string  `sls:"name"`
	Dir             string  `sls:"cwd"`
	Root            string  `sls:"root"`
	RunAs           string  `sls:"runas"`
	Shell           string  `sls:"shell"`
	Env             any     `sls:"env"`
	PrependPath     string  `sls:"prepend_path"`
	Stateful        any     `sls:"stateful"`
	Umask           string  `sls:"umask"`
	Loglevel        any     `sls:"output_loglevel"` // no effect: output is only in the report
	HideOutput      bool    `sls:"hide_output"`
	Timeout         float64 `sls:"timeout"` // in seconds
	IgnoreTimeout   bool    `sls:"ignore_timeout"`
	Terminal        any     `sls:"use_vt"`
	Stdin           string  `sls:"stdin"`
	CleanEnv        bool    `sls:"clean_env"`
	SuccessRetcodes phrases `sls:"success_retcodes"`
	SuccessStdout   phrases `sls:"success_stdout"`
	SuccessStderr   phrases `sls:"success_stderr"`

	Background bool `sls:"bg"`
}

// testName returns the command that a dry run runs, from stateful: [{test_name: COMMAND}]; "" if there is none.
func (o *options) testName() string {
	list, ok := o.Stateful.(*value.List)
	if !ok || list.Len() == 0 {
		return ""
	}
	first, ok := list.Items[0].(*value.Map)
	if !ok || !first.Has("test_name") {
		return ""
	}
	return value.Str(first.Value("test_name"))
}

// Valid returns an error for a command in the background: a run waits for its commands and ends the processes that they
// leave.
func (o *options) Valid() error {
	if !o.Background {
		return nil
	}
	return diag.Argument.Hint(errors.New("bg is not supported: commands do not run in the background of a run"),
		"start long work as a unit: `systemd-run --unit=NAME COMMAND`, or a service.running state")
}

// phrases is a list of texts, which may be written as one text separated by commas.
type phrases []string

// UnmarshalSLS accepts texts, numbers and booleans, single or in a list.
func (w *phrases) UnmarshalSLS(v any) error {
	for _, item := range module.Items(v) {
		switch item.(type) {
		case string, int, float64, bool:
			for word := range strings.SplitSeq(value.Str(item), ",") {
				*w = append(*w, strings.TrimSpace(word))
			}
		default:
			return fmt.Errorf("a list of numbers or texts was expected, not %s", value.Repr(v))
		}
	}
	return nil
}

// succeeded reports whether a command succeeded, by its exit code or by its output.
func (o *options) succeeded(out host.Output) bool {
	in := func(text string) func(string) bool {
		return func(part string) bool { return strings.Contains(text, part) }
	}
	return out.Code == 0 || slices.Contains(o.SuccessRetcodes, strconv.Itoa(out.Code)) ||
		slices.ContainsFunc(o.SuccessStdout, in(out.Stdout)) || slices.ContainsFunc(o.SuccessStderr, in(out.Stderr))
}

// line returns the command line with all options.
func (o *options) line(text string) (host.Line, error) {
	l := host.Line{
		Text: text, Root: o.Root, Terminal: value.Truth(o.Terminal), Shell: o.Shell, Dir: o.Dir, RunAs: o.RunAs,
		Path: o.PrependPath, Stdin: o.Stdin, Clean: o.CleanEnv,
		Env: module.Environment(o.Env), Limit: time.Duration(o.Timeout * float64(time.Second)),
	}
	if o.Umask == "" {
		return l, nil
	}
	mask, err := strconv.ParseUint(o.Umask, 8, 16)
	if err != nil {
		return l, fmt.Errorf("umask %s is not an octal number", o.Umask)
	}
	n := int(mask)
	l.Umask = &n
	return l, nil
}

// describe returns the first line of a command in backquotes, for messages.
func describe(text string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		first += " ..."
	}
	return "`" + first + "`"
}

// would implements Check for all states that run a command.
func (o *options) would(h *host.Host) (module.Diff, error) {
	if err := h.Commands.Allowed("the command " + describe(o.Name)); err != nil {
		return module.Diff{}, err
	}
	d := module.Diff{Unknown: true, Comment: "would run " + describe(o.Name)}
	if o.Root != "" || o.RunAs == "" {
		return d, nil
	}
	if _, ok, err := h.Accounts.User(o.RunAs); err == nil && !ok {
		err = diag.Prerequisite.Hint(fmt.Errorf("user %s does not exist", o.RunAs),
			"make it in a user.present state that this one requires")
		d.Missing = append(d.Missing, host.WithMissing(err, host.AUser, o.RunAs))
	}
	return d, nil
}

// perform runs a command and reports it like Salt: the changes are its output and exit code.
func (o *options) perform(ctx context.Context, h *host.Host, l host.Line) (module.Report, error) {
	if o.Dir != "" && o.Root == "" {
		if err := h.Enterable(o.Dir, o.RunAs); err != nil {
			return module.Report{}, err
		}
	}
	out, err := h.Shell(ctx, l)
	if err != nil {
		return module.Report{}, err
	}
	changes, ok := o.judge(&out, l)
	report := module.Report{Changes: changes, Comment: "ran " + describe(o.Name)}
	_, listed := o.Stateful.(*value.List)
	if truth, _ := o.Stateful.(bool); truth || listed {
		return stateful(changes, ok)
	}
	if !ok {
		return report, failure(o.Name, out, o.HideOutput)
	}
	return report, nil
}

// maxShown is the maximal size in bytes of each output stream in a result. Reports are kept for months.
const maxShown = 256 << 10

// shortened returns an output, with a note in the place of its middle if it is longer than maxShown.
func shortened(text string) string {
	if len(text) <= maxShown {
		return text
	}
	const half = maxShown / 2
	return strings.ToValidUTF8(text[:half], "") + fmt.Sprintf("\n[%d bytes are left out here]\n", len(text)-maxShown) +
		strings.ToValidUTF8(text[len(text)-half:], "")
}

// judge converts the result of a command to changes and reports whether it succeeded.
func (o *options) judge(out *host.Output, l host.Line) (*value.Map, bool) {
	out.Stdout, out.Stderr = strings.TrimRight(out.Stdout, "\r\n \t"), strings.TrimRight(out.Stderr, "\r\n \t")
	code, ok := out.Code, o.succeeded(*out)
	switch {
	case out.TimedOut && o.IgnoreTimeout:
		code, ok = 0, true
	case out.TimedOut:
		code, ok = 1, false
		out.Stdout, out.Stderr = fmt.Sprintf("%s : Timed out after %g seconds", l.Text, o.Timeout), ""
	case ok:
		code = 0
	}
	if o.HideOutput {
		out.Stdout, out.Stderr = "", ""
	}
	out.Stdout, out.Stderr = shortened(out.Stdout), shortened(out.Stderr)
	return value.NewMap("pid", out.PID, "retcode", code, "stdout", out.Stdout, "stderr", out.Stderr), ok
}

func failure(name string, out host.Output, hidden bool) error {
	err := fmt.Errorf("%s ended with code %d", describe(name), out.Code)
	if out.TimedOut {
		return diag.Timeout.Hint(fmt.Errorf("%s did not end in time", describe(name)),
			"raise its timeout argument, or start long work as a unit")
	}
	if last := lastLine(out.Stderr); last != "" && !hidden {
		err = fmt.Errorf("%w: %s", err, last)
	}
	return err
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// ActsAlways reports whether every run counts as a change, because the command does not report its changes
// itself (stateful).
func (o *options) ActsAlways() bool { return o.Stateful == nil || o.Stateful == false }

// run implements cmd.run.
type run struct{ options }

func (r *run) Check(_ context.Context, h *host.Host) (module.Diff, error) { return r.would(h) }

func (r *run) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	l, err := r.line(r.Name)
	if err != nil {
		return module.Report{}, err
	}
	return r.perform(ctx, h, l)
}

// Rehearse runs the test_name command of stateful, if there is one, to predict the changes. Otherwise it calls Check.
func (r *run) Rehearse(ctx context.Context, h *host.Host) (module.Diff, error) {
	test := r.testName()
	if test == "" {
		return r.Check(ctx, h)
	}
	if err := h.Commands.Allowed("the command " + describe(test)); err != nil {
		return module.Diff{}, err
	}
	l, err := r.line(test)
	if err != nil {
		return module.Diff{}, err
	}
	report, err := r.perform(ctx, h, l)
	d := module.Diff{Changes: report.Changes, Comment: report.Comment}
	if err != nil && value.Equal(report.Changes.Value("retcode"),
		0) { // the command succeeded, but its output cannot be parsed
		d.Unknown, d.Comment = true, err.Error()
		return d, nil
	}
	return d, err
}

// Watched returns the state itself, so the command runs again.
func (r *run) Watched() module.Resource { return r }

// waiting implements cmd.wait: it runs the command only if a watched state changes.
type waiting struct{ run }

func (w *waiting) Check(context.Context, *host.Host) (module.Diff, error) { return module.Diff{}, nil }

func (w *waiting) Rehearse(ctx context.Context, h *host.Host) (module.Diff, error) {
	return w.Check(ctx, h)
}

func (w *waiting) Watched() module.Resource { return &w.run }
