package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
		states = fmt.Sprintf("%d states were", answer.Unrun)
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
