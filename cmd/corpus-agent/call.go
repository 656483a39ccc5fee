package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

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
		return exit.WithCode(saltUsage, diag.Usage.Hint(err, "%s", cli.FlagHint(c, err)))
	})
	treeFlags(c, &given.trees)
	flags := c.Flags()
	flags.StringVar(&given.out, "out", "", "format of the result: "+strings.Join(outputter.Formats(), ", "))
	flags.StringVar(&given.mode, "state-output", "",
		"format of the results of states: "+strings.Join(minion.Modes(), ", "))
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
	return exit.WithCode(saltUsage, diag.Usage.Hint(errors.New(command.CommandPath()+": FUNCTION is missing"),
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
	quick := strings.HasPrefix(name, "test.") && !c.salt.metadata && c.salt.returners == ""
	if !quick { // the functions of test run no programs, and need no grains
		if err := a.CheckPrograms(); err != nil {
			return asSaltCall(err)
		}
	}
	opened, err := a.Session(ctx, c.trees, quick)
	if err != nil {
		return err
	}
	defer opened.Close()
	options, err := c.options(opened, name)
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
	options.Ordered = answer.Own && !c.salt.metadata
	if err == nil {
		notes = append(notes, c.sendBack(ctx, opened, name, words, answer)...)
		answer.Value, err = c.formatted(ctx, opened, answer.Value, &options)
	}
	printNotes(c.Err, counted(append(notes, opened.Notes...)))
	return c.show(name, opened.ID, answer, err, options)
}

// printNotes prints notes. Further lines of one are indented, so that no text of a module looks like a line of
// the agent.
func printNotes(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintln(w, "note:", indented("  ", strings.ReplaceAll(note, "\r", "\n")))
	}
}
