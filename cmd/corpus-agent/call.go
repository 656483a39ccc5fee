package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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

// calling has the flags of the call command.
type calling struct {
	*program
	trees   inspect.Trees
	out     string
	mode    string
	verbose string
	salt    saltFlags
}

func (p *program) callCommand() *cobra.Command {
	given := &calling{program: p}
	c := &cobra.Command{
		Use:   "call FUNCTION [ARGUMENT | NAME=VALUE]...",
		Short: "Call a function as salt-call --local does",
		Long: `call runs one function on this host and prints its result: state.apply and the other functions that run
states, state.show_*, pillar.*, grains.*, slsutil.renderer, and every other function that templates may call.
Arguments are written as for salt-call: values are YAML, and NAME=VALUE is an argument by name.

Without -c, --states and --pillar the files are those of the releases that are deployed here.
-c reads the minion file of a masterless Salt host.

Exit codes are those of salt-call: 0 success, 1 the function or a state failed, or SLS or pillar does not compile,
64 usage, 255 the function does not exist. With --retcode-passthrough they are the exit code of a command, 2 for
failed states, and 5 for a pillar that does not compile. 6, another run is under way, is not used by salt-call.`,
		Example: `  corpus-agent call state.apply
  corpus-agent call state.apply web,db test=True
  corpus-agent call state.sls_id nginx.conf web
  corpus-agent call state.single file.managed /tmp/x contents=hello
  corpus-agent call state.show_lowstate web --states ./states --pillar ./pillar.example
  corpus-agent call -c /etc/salt pillar.get users:alice --out json
  corpus-agent call slsutil.renderer salt://web/init.sls default_renderer=jinja
  corpus-agent call grains.get os_family`,
		Args:              given.arguments,
		ValidArgsFunction: completeFunctions,
		RunE: func(c *cobra.Command, args []string) error {
			if given.salt.version {
				_, err := fmt.Fprintln(given.Out, c.Root().Name(), cli.Version)
				return err
			}
			if !c.Flags().Changed("progress") {
				given.salt.progress = cli.Terminal(given.Err)
			}
			return asSaltCall(given.run(c.Context(), args, idleNotes(c.Flags())))
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exit.WithCode(saltUsage, diag.WithHint(err, "%s", cli.FlagHint(c, err)))
	})
	treeFlags(c, &given.trees)
	flags := c.Flags()
	flags.StringVar(&given.out, "out", "", "format of the result: "+strings.Join(outputter.Formats(), ", "))
	flags.StringVar(&given.mode, "state-output", "", "format of the results of states: "+strings.Join(minion.Modes(), ", "))
	flags.StringVar(&given.verbose, "state-verbose", "", "False omits the states that needed no change")
	flags.Bool("local", true, "accepted; there is no master")
	given.salt.add(c)
	return c
}

// treeFlags adds the flags for the places of files, in place of the deployed releases.
func treeFlags(c *cobra.Command, t *inspect.Trees) {
	flags := c.Flags()
	flags.StringVarP(&t.Minion, "config-dir", "c", "", "directory with a Salt minion file, such as /etc/salt")
	cli.RepeatedVar(flags, &t.States, "states", "",
		"directory of SLS files to use instead; may be repeated, and a file is taken from the first that has it")
	cli.RepeatedVar(flags, &t.Pillar, "pillar", "",
		"directory of pillar files to use instead, or a YAML file that overrides values of the pillar")
	flags.StringVar(&t.Grains, "grains", "", "YAML or JSON file of grains that override those of this host")
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

// The exit codes of salt-call that no other command uses.
const (
	saltFailed  = 1   // EX_GENERIC
	saltUsage   = 64  // EX_USAGE
	saltUnknown = 255 // sys.exit(-1)
)

// asSaltCall sets the exit code of salt-call on an error, except for a run that the lock refused and one that was
// interrupted.
func asSaltCall(err error) error {
	switch code := exit.Code(err); code {
	case exit.OK, saltFailed, exit.Locked, exit.Interrupted, saltUsage, saltUnknown:
		return err
	default:
		var given *returned
		if errors.As(err, &given) {
			return exit.WithCode(given.code, err)
		}
		return exit.WithCode(saltFailed, err)
	}
}

// returned is the failure of a function, with its code for --retcode-passthrough.
type returned struct {
	error
	code int
}

func (r *returned) Unwrap() error { return r.error }

// code sets the exit code of a failure. A call that the lock refused, or that was interrupted, keeps its own exit
// code.
func (c *calling) code(answer session.Answer, err error) error {
	if code := exit.Code(err); code == exit.Locked || code == exit.Interrupted {
		return err
	}
	if !c.salt.passthrough || answer.Code == 0 {
		return exit.WithCode(saltFailed, err)
	}
	return exit.WithCode(answer.Code, &returned{err, answer.Code})
}

// arguments checks that a function is named, unless an option takes its place.
func (c *calling) arguments(command *cobra.Command, args []string) error {
	if len(args) > 0 || c.salt.doc || c.salt.grains || c.salt.versions || c.salt.version {
		return nil
	}
	return exit.WithCode(saltUsage, diag.WithHint(errors.New(command.CommandPath()+": FUNCTION is missing"),
		"such as test.ping, state.apply or sys.list_functions; `%s --help` has examples", command.CommandPath()))
}

// function returns the name of the function to call, and its arguments.
func (c *calling) function(args []string) (name string, words []string) {
	switch {
	case c.salt.versions:
		return "test.versions_report", nil
	case c.salt.grains:
		return "grains.items", nil
	case c.salt.doc:
		return "sys.doc", args
	}
	return args[0], args[1:]
}

func (c *calling) run(ctx context.Context, typed, notes []string) error {
	if err := c.salt.check(); err != nil {
		return exit.WithCode(saltUsage, err)
	}
	c.lenient = true
	a, err := c.agent(map[string]string{})
	if err != nil {
		return err
	}
	name, words := c.function(typed)
	c.trees.ID, c.trees.SkipGrains, c.trees.Logged = c.salt.id, c.salt.skipGrains, c.salt.logged
	quick := strings.HasPrefix(name, "test.") && !c.salt.metadata
	if !quick { // the functions of test run no programs
		if err := a.CheckPrograms(); err != nil {
			return asSaltCall(err)
		}
	}
	opened, err := a.Session(ctx, c.trees, quick)
	if err != nil {
		return err
	}
	defer opened.Close()
	options, err := c.options(opened.Output, name)
	if err != nil {
		return exit.WithCode(saltUsage, err)
	}
	if c.salt.progress {
		opened.Observer = progressOn(c.IO)
	}
	args, kwargs := session.ParseArguments(words, c.salt.noParse...)
	answer, err := a.Call(ctx, opened, name, args, kwargs)
	if found, is := answer.Value.(*value.Map); c.salt.doc && err == nil && is && found.Len() == 0 && len(args) > 0 {
		answer, err = undocumented(ctx, a, opened, args)
	}
	for _, note := range counted(append(notes, opened.Notes...)) {
		fmt.Fprintln(c.Err, "note:", note)
	}
	return c.show(name, opened.ID, answer, err, options)
}

// undocumented returns the result of -d for names that are no functions of templates: the documentation of state
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
	return answer, diag.WithHint(fmt.Errorf("%w: %s", session.ErrNoFunction, value.Str(names[0])), "%s", hint)
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
func (c *calling) options(said minion.Output, name string) (outputter.Options, error) {
	o := outputter.Options{Format: said.Format, Mode: said.Mode, Brief: !said.Verbose,
		Color: c.salt.isColored(said.Color, c.IO, c.Out)}
	if c.salt.metadata {
		o.Format = "nested"
	}
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
	if outputter.Known(o.Format) {
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
	return diag.WithHint(fmt.Errorf("%s: there is no %q", flag, word), "%s", hint)
}
