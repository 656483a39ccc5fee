package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/minion"
	"github.com/corpus-agent/corpus-agent/agent/report/outputter"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// undocumented returns the result of -d for names that are not functions of templates: the documentation of state
// functions, or an error that suggests a similar name.
func undocumented(ctx context.Context, a *agent.Agent, opened *inspect.Opened, names []any) (session.Answer, error) {
	answer, err := a.Call(ctx, opened, "sys.state_doc", names, value.NewMap())
	if found, is := answer.Value.(*value.Map); err != nil || !is || found.Len() > 0 {
		return answer, err
	}
	var known []string
	for _, lister := range []string{"sys.list_functions", "sys.list_state_functions"} {
		functions, err := a.Call(ctx, opened, lister, nil, value.NewMap())
		if err != nil {
			return answer, err
		}
		if list, is := functions.Value.(*value.List); is {
			for _, name := range list.Items {
				known = append(known, value.Str(name))
			}
		}
	}
	hint := cmp.Or(diag.DidYouMean(value.Str(names[0]), known),
		"sys.list_functions and sys.list_state_functions list them")
	return answer, diag.Function.Hint(fmt.Errorf("%w: %s", session.ErrNoFunction, value.Str(names[0])), "%s", hint)
}

// show prints the result of a function, or its error.
func (c *calling) show(name, id string, answer session.Answer, err error, o outputter.Options) error {
	if errors.Is(err, session.ErrNoFunction) {
		return exit.WithCode(saltUnknown, err)
	}
	if err != nil {
		return c.code(answer, c.refused(name, answer, err, o))
	}
	if err := c.salt.write(c.Out, c.metadata(name, id, answer), o); err != nil {
		return err
	}
	if empty, ok := answer.Value.(*value.Map); ok && answer.States && empty.Len() == 0 {
		fmt.Fprintln(c.Err, "note: the SLS files declare no states")
	}
	if answer.Unrun > 0 {
		fmt.Fprintln(c.Err, "note:", unrunNote(answer, c.trees.Minion))
	}
	if answer.Code != 0 || answer.Failed {
		return cli.AlreadyReported(c.code(answer, errors.New("the function failed")))
	}
	return nil
}

// unrunNote returns a note that says how many states did not run after a failure, why, and how to run them.
func unrunNote(answer session.Answer, minion string) string {
	states := "1 state was"
	if answer.Unrun > 1 {
		states = diag.Count(answer.Unrun, "state") + " were"
	}
	why := "the state that failed has failhard: True"
	switch {
	case answer.Failhard && minion != "":
		why = "failhard is set by the minion file or the command line; failhard=False runs them all"
	case answer.Failhard:
		why = "converge.failhard of agent.yaml is true, as by default; failhard=False runs them all"
	}
	return fmt.Sprintf("%s not run after the failure: %s", states, why)
}

// metadata returns a result with the fields that --metadata adds.
func (c *calling) metadata(name, id string, answer session.Answer) any {
	if !c.salt.metadata {
		return answer.Value
	}
	return value.NewMap("fun", name, "id", id, "retcode", answer.Code, "return", answer.Value)
}

// refused prints an error. Programs that parse the output find the problems of files where salt-call puts them. A
// partial result is printed, too.
func (c *calling) refused(name string, answer session.Answer, err error, o outputter.Options) error {
	messages := session.Messages(err)
	var broken *session.PillarError
	machine := o.Format == "json" || o.Format == "yaml"
	silent := !machine || errors.As(err, &broken) && !session.Results(name)
	if messages == nil || answer.Value == nil && silent {
		return err
	}
	var shown any = messages
	if answer.Value != nil {
		shown = answer.Value
	}
	if writeErr := c.salt.write(c.Out, shown, o); writeErr != nil {
		return writeErr
	}
	if errors.As(err, &broken) && strings.HasPrefix(name, "pillar.") && !tellsProblems(answer.Value) {
		return err
	}
	return cli.AlreadyReported(err)
}

// tellsProblems reports whether a result contains the problems of the pillar, as that of pillar.items does.
func tellsProblems(answer any) bool {
	m, ok := answer.(*value.Map)
	return ok && m.Has("_errors")
}

// options returns the format of the output: the command line overrides the minion file, and states have a special
// format.
func (c *calling) options(opened *inspect.Opened, name string) (outputter.Options, error) {
	said := opened.Output
	o := outputter.Options{Format: said.Format, Mode: said.Mode, Brief: !said.Verbose,
		Color: c.salt.isColored(said.Color, c.IO, c.Out)}
	if c.salt.metadata {
		o.Format = "nested"
	}
	if c.out != "" {
		o.Format = c.out
	}
	if o.Format == "" && !c.json {
		if named := opened.OutputOf(name); outputter.Known(named) || named != "" && opened.HasOutputter(named) {
			o.Format = named
		}
	}
	if o.Format == "" {
		o.Format = formatOf(name, c.json)
	}
	if c.mode != "" {
		o.Mode = strings.TrimSuffix(c.mode, "_id")
		if err := oneOf("--state-output", o.Mode, minion.Modes()); err != nil {
			return o, err
		}
	}
	if c.verbose != "" {
		verbose, _ := session.ParseArguments([]string{c.verbose})
		o.Brief = !value.Truth(verbose[0])
	}
	if outputter.Known(o.Format) || opened.HasOutputter(o.Format) {
		return o, nil
	}
	return o, oneOf("--out", o.Format, outputter.Formats())
}

func formatOf(name string, asJSON bool) string {
	switch {
	case asJSON:
		return "json"
	case session.Results(name):
		return "highstate"
	}
	return "nested"
}

func oneOf(flag, word string, known []string) error {
	for _, k := range known {
		if k == word {
			return nil
		}
	}
	hint := diag.DidYouMean(word, known)
	if hint == "" {
		hint = "it is one of " + strings.Join(known, ", ")
	}
	return diag.Usage.Hint(fmt.Errorf("%s: there is no %q", flag, word), "%s", hint)
}

// formatted returns an answer as an outputter of the tree prints it, if the format names one.
func (c *calling) formatted(ctx context.Context, o *inspect.Opened, answer any,
	options *outputter.Options) (any, error) {
	if outputter.Known(options.Format) {
		return answer, nil
	}
	name := options.Format
	options.Format = outputter.Formatted
	return o.Formatted(ctx, name, value.NewMap("local", answer).Plain())
}

// sendBack passes an answer to the returners that the command line or the minion file names, and returns notes about
// those that failed.
func (c *calling) sendBack(ctx context.Context, o *inspect.Opened, name string, words []string,
	answer session.Answer) (notes []string) {
	ret := value.NewMap("id", o.ID, "jid", time.Now().UTC().Format("20060102150405")+"000000", "fun", name, "fun_args",
		value.Strings(words...), "return", answer.Value, "retcode", answer.Code, "success", true)
	var others []string
	var failed []error
	for _, name := range c.returners(o) {
		sink := c.sink(name, o)
		if sink == nil || o.HasReturner(name) {
			others = append(others, name)
		} else if err := sink(ret); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	for _, err := range append(failed, o.Return(ctx, strings.Join(others, ","), ret)...) {
		note := fmt.Sprintf("the result was not returned: %v", err)
		if hint := diag.HintOf(err); hint != "" && !strings.Contains(note, hint) {
			note += "\n" + diag.HintLines(hint)
		}
		notes = append(notes, note)
	}
	return notes
}

// returners returns the names of the returners.
func (c *calling) returners(o *inspect.Opened) (names []string) {
	if c.salt.returners != "" {
		return strings.Split(c.salt.returners, ",")
	}
	switch named := o.Options.Value("return").(type) {
	case string:
		return strings.Split(named, ",")
	case *value.List:
		for _, item := range named.Items {
			names = append(names, value.Str(item))
		}
	}
	return names
}

// sink returns the returner of Salt with a name that has a meaning on a host without a master, or nil.
func (c *calling) sink(name string, o *inspect.Opened) func(*value.Map) error {
	switch strings.TrimSpace(name) {
	case "syslog":
		return func(ret *value.Map) error { return c.toSyslog(o, ret) }
	case "rawfile_json":
		return func(ret *value.Map) error { return c.toFile(o, ret) }
	case "local_cache":
		return func(*value.Map) error {
			return diag.Notify.Hint(errors.New("there is no cache of jobs"), "`corpus-agent history` shows the runs that "+
				"deployed something, and docs/notify.md what receives their results")
		}
	}
	return nil
}

// returnOption returns an option of a returner, which is a string.
func returnOption(o *inspect.Opened, name, otherwise string) string {
	if text, ok := o.Options.Value(name).(string); ok && text != "" {
		return text
	}
	section, key, _ := strings.Cut(name, ".")
	m, _ := o.Options.Value(section).(*value.Map)
	if text, ok := m.Value(key).(string); ok && text != "" {
		return text
	}
	return otherwise
}

// toFile appends a result to a file, as a line of JSON.
func (c *calling) toFile(o *inspect.Opened, ret *value.Map) error {
	if c.layout().Relocated() {
		return errors.New("not with --root")
	}
	line, err := json.Marshal(value.Printable(ret))
	if err != nil {
		return err
	}
	to := saltFlags{file: returnOption(o, "rawfile_json.filename", "/var/log/salt/events"), appends: true}
	return to.write(nil, string(line), outputter.Options{Format: outputter.Formatted})
}

// levels and facilities are those of syslog(3), by their numbers.
func levels() []string {
	return []string{"EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG"}
}

func facilities() []string {
	return []string{"KERN", "USER", "MAIL", "DAEMON", "AUTH", "SYSLOG", "LPR", "NEWS", "UUCP", "CRON", "AUTHPRIV", "FTP",
		"", "", "", "", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4", "LOCAL5", "LOCAL6", "LOCAL7"}
}

// syslogSocket is where syslog listens.
const syslogSocket = "/dev/log"

// syslogTime is the maximum time in which syslog takes a line: its buffer stays full while its daemon is stopped.
const syslogTime = 5 * time.Second

// toSyslog writes a result to syslog, as a line of JSON.
func (c *calling) toSyslog(o *inspect.Opened, ret *value.Map) error {
	if c.layout().Relocated() {
		return errors.New("not with --root")
	}
	level := slices.Index(levels(), strings.TrimPrefix(returnOption(o, "syslog.level", "LOG_INFO"), "LOG_"))
	facility := slices.Index(facilities(), strings.TrimPrefix(returnOption(o, "syslog.facility", "LOG_USER"), "LOG_"))
	if level < 0 || facility < 0 {
		return diag.Config.Hint(errors.New("syslog.level or syslog.facility of the minion file is unknown"),
			"write them as LOG_INFO and LOG_USER")
	}
	line, err := json.Marshal(value.Printable(ret))
	if err != nil {
		return err
	}
	conn, err := net.Dial("unixgram", syslogSocket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(syslogTime)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(conn, "<%d>%s[%d]: %s", facility*8+level, returnOption(o, "syslog.tag", "corpus-agent"),
		os.Getpid(), line)
	return err
}
