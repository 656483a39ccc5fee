package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// usage turns an error about flags or arguments into a usage error.
func usage(c *cobra.Command, err error) error {
	return exit.WithCode(exit.Usage, diag.Usage.Hint(err, "%s", FlagHint(c, err)))
}

// FlagHint returns the hint for an error about flags: the flag that was probably meant, or the command that lists
// them.
func FlagHint(c *cobra.Command, err error) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if flag, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		if c.Name() == "call" && habit(flag) == "test" || c.Name() == "call" && flag == "test" {
			return "write test=True after the function, as for salt-call"
		}
		if own := habit(flag); slices.Contains(names, own) {
			return fmt.Sprintf("write --%s", own)
		}
		if meant := diag.Nearest(flag, names); meant != "" {
			return fmt.Sprintf("did you mean --%s?", meant)
		}
	}
	if strings.HasPrefix(err.Error(), "unknown shorthand flag: 'l'") && slices.Contains(names, "verbose") {
		return "write --verbose to see more"
	}
	return fmt.Sprintf("`%s --help` lists the flags", c.CommandPath())
}

// habit returns the flag of this program that corresponds to a flag of other tools; "" for none.
func habit(flag string) string {
	switch flag {
	case "dry-run", "dryrun", "check", "noop", "what-if", "simulate":
		return "test"
	case "log-level", "debug":
		return "verbose"
	case "out", "output", "format":
		return "json"
	}
	return ""
}

// saltArgument returns an error for arguments such as test=True, which salt-call takes, if the command has a flag
// with that name: they are not names of services.
func saltArgument(c *cobra.Command, args []string) error {
	for _, arg := range args {
		name, _, ok := strings.Cut(arg, "=")
		if ok && c.Flags().Lookup(name) != nil {
			err := fmt.Errorf("%s does not take the argument %q", c.CommandPath(), arg)
			return exit.WithCode(exit.Usage, diag.Usage.Hint(err, "write --%s", name))
		}
	}
	return nil
}

// argumentsOf returns the arguments that a usage line names, without flags and their values.
func argumentsOf(use string) (required, all []string, more bool) {
	depth, skip := 0, false
	for _, word := range strings.Fields(use)[1:] {
		opens, closes := strings.Count(word, "["), strings.Count(word, "]")
		name := strings.Trim(word, "[].")
		switch {
		case skip:
			skip = false
		case strings.HasPrefix(name, "-"):
			skip = true
		case name != "|":
			all = append(all, name)
			if depth+opens == 0 {
				required = append(required, name)
			}
			more = more || strings.HasSuffix(word, "...")
		}
		depth += opens - closes
	}
	return required, all, more
}

// wrongArguments returns an error that says which arguments are missing or too many.
func wrongArguments(c *cobra.Command, args []string, err error) error {
	required, all, more := argumentsOf(c.Use)
	_, line, _ := strings.Cut(c.Use, " ")
	hint := fmt.Sprintf("write `%s`; `%s --help` has examples", strings.TrimSpace(c.CommandPath()+" "+line),
		c.CommandPath())
	switch {
	case len(args) < len(required):
		missing, verb := strings.Join(required[len(args):], ", "), "is"
		if len(args)+1 < len(required) {
			verb = "are"
		}
		err = fmt.Errorf("%s: %s %s missing", c.CommandPath(), missing, verb)
	case len(all) == 0 && !more:
		err = fmt.Errorf("%s takes no arguments, and %q was given", c.CommandPath(), args[0])
	case len(args) > len(all) && !more:
		err = fmt.Errorf("%s takes %s, and %q is one argument too many", c.CommandPath(), strings.Join(all, " "),
			args[len(all)])
	default:
		return usage(c, fmt.Errorf("%s: %w", c.Use, err))
	}
	return exit.WithCode(exit.Usage, diag.Usage.Hint(err, "%s", hint))
}

// wrongFlags replaces cobra's errors about flags that are missing or exclude each other.
func wrongFlags(c *cobra.Command, err error) error {
	text := err.Error()
	_, group, _ := strings.Cut(text, "[")
	group, _, _ = strings.Cut(group, "]")
	flags := "--" + strings.Join(strings.Fields(group), " or --")
	switch {
	case strings.HasPrefix(text, "required flag(s) "):
		flags = "--" +
			strings.ReplaceAll(strings.Trim(strings.TrimSuffix(strings.TrimPrefix(text, "required flag(s) "), " not set"), `"`),
				`", "`, ", --")
		err = fmt.Errorf("%s: %s is missing", c.CommandPath(), flags)
	case strings.HasPrefix(text, "at least one of the flags in the group "):
		err = fmt.Errorf("%s: %s is missing", c.CommandPath(), flags)
	case strings.HasPrefix(text, "if any flags in the group "):
		err = fmt.Errorf("%s: only one of %s can be given", c.CommandPath(), flags)
	default:
		return err
	}
	return usage(c, err)
}

// wrongCommand returns the error of a command line that names an unknown subcommand. cobra would print the help of
// the group and succeed.
func wrongCommand(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil || c == root || c.Runnable() || c.ParseFlags(rest) != nil || c.Flags().NArg() == 0 {
		return nil // cobra reports all other mistakes
	}
	return noCommand(c, c.Flags().Arg(0))
}

func noCommand(group *cobra.Command, name string) error {
	var names []string
	for _, c := range group.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := diag.DidYouMean(name, names)
	if hint == "" {
		hint = fmt.Sprintf("`%s --help` lists the commands", group.CommandPath())
	}
	return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("unknown command %q for %q", name, group.CommandPath()),
		"%s", hint))
}

// helpCommand is like cobra's, but returns an error for a command that does not exist.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | CODE]...",
		Short: "Help about a command, or about the code at the end of a hint, such as C010",
		RunE: func(c *cobra.Command, args []string) error {
			if topic, is := topicNamed(args); is {
				return explain(c.OutOrStdout(), topic)
			}
			found, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noCommand(found, strings.Join(rest[:min(len(rest), 1)], ""))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// unknownCommand turns cobra's errors about commands into usage errors.
func unknownCommand(root *cobra.Command, err error) error {
	text, suggestion, _ := strings.Cut(err.Error(), "\n\nDid you mean this?\n\t")
	if !strings.HasPrefix(text, "unknown command") || diag.HintOf(err) != "" {
		return err
	}
	hint := fmt.Sprintf("`%s --help` lists the commands", root.CommandPath())
	if name := quoted(text); strings.Contains(name, ".") && hasCommand(root, "call") {
		hint = fmt.Sprintf("`%s call FUNCTION` calls functions such as %s", root.CommandPath(), name)
	}
	if s := strings.Fields(suggestion); len(s) > 0 {
		hint = fmt.Sprintf("did you mean %q?", s[0])
	}
	return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New(text), "%s", hint))
}

// quoted returns the first part of a text that is in quotation marks.
func quoted(text string) string {
	_, rest, _ := strings.Cut(text, `"`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

func hasCommand(root *cobra.Command, name string) bool {
	return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
}
