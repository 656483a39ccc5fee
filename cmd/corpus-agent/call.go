package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/minion"
	"github.com/corpus-agent/corpus-agent/agent/report/outputter"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// calling is what the call command was given.
type calling struct {
	*program
	trees   agent.Trees
	out     string
	mode    string
	verbose string
	local   bool
}

func (p *program) callCommand() *cobra.Command {
	given := &calling{program: p}
	c := &cobra.Command{
		Use:   "call FUNCTION [ARGUMENT | NAME=VALUE]...",
		Short: "Call a function as salt-call --local does",
		Long: `call runs one function on this host and shows what it answers: state.apply and its kin, state.show_*,
pillar.*, grains.*, slsutil.renderer, and every other function that templates may call. Arguments
are written as for salt-call: values are YAML, and NAME=VALUE is an argument by name.

Without -c, --states and --pillar the files are those of the releases that are deployed here.
-c reads the minion file of a masterless Salt host.

Exit codes: 0 done, 1 the function failed, 2 usage, or SLS or pillar that does not compile, 3 states
failed, 6 another run is under way.`,
		Example: `  corpus-agent call state.apply
  corpus-agent call state.apply web,db test=True
  corpus-agent call state.sls_id nginx.conf web
  corpus-agent call state.single file.managed /tmp/x contents=hello
  corpus-agent call state.show_lowstate web --states ./states --pillar ./pillar.example
  corpus-agent call -c /etc/salt pillar.get users:alice --out json
  corpus-agent call slsutil.renderer salt://web/init.sls default_renderer=jinja
  corpus-agent call grains.get os_family`,
		Args:              cli.Args(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeFunctions,
		RunE:              func(c *cobra.Command, args []string) error { return given.run(c.Context(), args[0], args[1:]) },
	}
	treeFlags(c, &given.trees)
	flags := c.Flags()
	flags.StringVar(&given.out, "out", "", "form of the answer: "+strings.Join(outputter.Formats(), ", "))
	flags.StringVar(&given.mode, "state-output", "", "results of states: "+strings.Join(minion.Modes(), ", "))
	flags.StringVar(&given.verbose, "state-verbose", "", "False leaves out the states that needed no change")
	flags.BoolVar(&given.local, "local", true, "accepted for salt-call's sake; there is no master to ask")
	return c
}

// treeFlags are the flags that say where files come from, if not from what is deployed.
func treeFlags(c *cobra.Command, t *agent.Trees) {
	flags := c.Flags()
	flags.StringVarP(&t.Minion, "config-dir", "c", "", "directory with a Salt minion file, such as /etc/salt")
	flags.StringArrayVar(&t.States, "states", nil, "directory of SLS files instead; may be given several times, the first that has a file wins")
	flags.StringArrayVar(&t.Pillar, "pillar", nil, "directory of pillar files instead, or a YAML file whose content goes over the pillar")
	flags.StringVar(&t.Grains, "grains", "", "YAML or JSON file of grains that win over this host's")
}

// completeFunctions completes the name of the function.
func completeFunctions(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, name := range session.StateFunctions() {
		if strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (c *calling) run(ctx context.Context, name string, words []string) error {
	patient()
	a, err := c.agent(map[string]string{})
	if err != nil {
		return err
	}
	opened, err := a.Session(ctx, c.trees, strings.HasPrefix(name, "test."))
	if err != nil {
		return err
	}
	options, err := c.options(opened.Output, name)
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	args, kwargs := session.ParseArguments(words)
	answer, err := a.Call(ctx, opened, name, args, kwargs)
	for _, note := range opened.Notes {
		fmt.Fprintln(c.Err, "note:", note)
	}
	if errors.Is(err, session.ErrNoFunction) {
		return exit.WithCode(exit.Usage, err)
	}
	if err != nil {
		return c.refused(name, answer, err, options)
	}
	if err := outputter.Write(c.Out, answer.Value, options); err != nil {
		return err
	}
	if empty, ok := answer.Value.(*value.Map); ok && answer.States && empty.Len() == 0 {
		fmt.Fprintln(c.Err, "note: the SLS files declare no states")
	}
	if answer.Failed {
		return cli.AlreadyTold(exit.WithCode(exit.Failed, errors.New("states failed")))
	}
	return nil
}

// refused shows an error. Programs that read the answer find the problems of files where salt-call
// puts them, and half an answer is shown too.
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
	if writeErr := outputter.Write(c.Out, shown, o); writeErr != nil {
		return writeErr
	}
	return cli.AlreadyTold(exit.WithCode(exit.Usage, err))
}

// options settle how the answer is shown: the command line wins over the minion file, and states
// have a form of their own.
func (c *calling) options(said minion.Output, name string) (outputter.Options, error) {
	o := outputter.Options{Format: said.Format, Mode: said.Mode, Brief: !said.Verbose, Color: said.Color && c.Color(c.Out)}
	if c.out != "" {
		o.Format = c.out
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
	return diag.WithHint(fmt.Errorf("%s: there is no %q", flag, word), "%s", hint)
}
