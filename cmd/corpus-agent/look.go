package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// answer prints a result as JSON, or as text.
func (p *program) answer(result any, text string) error {
	if p.json {
		return p.JSON(result)
	}
	_, err := fmt.Fprintln(p.Out, text)
	return err
}

func (p *program) statusCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "status",
		Short: "Show what runs on this host, since when, and what is wrong",
		Example: `  corpus-agent status
  corpus-agent status --all
  corpus-agent status --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			s, err := a.Status()
			if err != nil {
				return err
			}
			if s.NextRun = a.NextRun(c.Context()); s.NextRun == nil {
				s.TimerOff = a.TimerOff(c.Context())
			}
			a.AskUnit(c.Context(), &s)
			if err := a.RunningUnits(c.Context(), &s); err != nil {
				s.Drift = append(s.Drift, fmt.Sprintf("what the units run is not known: %v", err))
			}
			if p.json {
				return p.JSON(s)
			}
			named, err := a.LastNamed()
			if err != nil {
				named = nil // the command why reports that the report cannot be read
			}
			return p.printStatus(s, named, all)
		},
	}
	c.Flags().BoolVar(&all, "all", false,
		"show all quarantined releases, not only the newest and those that the channels name")
	return c
}

func (p *program) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "history",
		Short:   "List the recorded runs, newest first",
		Example: `  corpus-agent history`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			list, err := a.History()
			if err != nil {
				return err
			}
			if p.json {
				return p.JSON(list)
			}
			w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
			for _, r := range list {
				what := ""
				if about := r.About(); about != nil {
					what = about.String()
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Command, r.Outcome, what, r.States,
					diag.Elapsed(r.Duration()), r.Fault)
			}
			return w.Flush()
		},
	}
}

func (p *program) grainsCommand() *cobra.Command {
	return p.dataCommand("grains", "Show the grains of this host",
		func(ctx context.Context, a *agent.Agent) (*value.Map, []error, error) { return a.ShowGrains(ctx) })
}

func (p *program) pillarCommand() *cobra.Command {
	return p.dataCommand("pillar", "Show this host's pillar",
		func(ctx context.Context, a *agent.Agent) (*value.Map, []error, error) { return a.ShowPillar(ctx) })
}

// dataCommand returns a command that prints a mapping, or one value of it, and prints on standard error what is
// missing from it.
func (p *program) dataCommand(name, short string,
	get func(context.Context, *agent.Agent) (*value.Map, []error, error)) *cobra.Command {
	return &cobra.Command{
		Use:     name + " [KEY]",
		Short:   short,
		Long:    short + ". With KEY only its value is shown; a:b:0 selects a nested value.",
		Example: fmt.Sprintf("  corpus-agent %s\n  corpus-agent %s a:b", name, name),
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			all, missing, err := get(c.Context(), a)
			for _, m := range missing {
				fmt.Fprintln(p.Err, "note:", m)
			}
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return p.printValue(all)
			}
			v, ok := value.Lookup(all, args[0], ":")
			if !ok {
				return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("there is no %q in the %s", args[0], name), "%s",
					meant(all, args[0])))
			}
			return p.printValue(v)
		},
	}
}

// meant returns a hint for a key that does not exist: a similar key in the mapping to which the existing part of
// the key leads.
func meant(all *value.Map, key string) string {
	above, last := "", key
	if i := strings.LastIndex(key, ":"); i >= 0 {
		if v, ok := value.Lookup(all, key[:i], ":"); !ok {
			return meant(all, key[:i])
		} else if below, ok := v.(*value.Map); ok {
			all, above, last = below, key[:i+1], key[i+1:]
		}
	}
	if best := diag.Nearest(last, all.Names()); best != "" {
		return fmt.Sprintf("did you mean %q?", above+best)
	}
	if whole := above + strings.ReplaceAll(last, ".", ":"); strings.Contains(last, ".") {
		if _, ok := value.Lookup(all, strings.ReplaceAll(last, ".", ":"), ":"); ok {
			return fmt.Sprintf("keys are joined by colons: %s", whole)
		}
	}
	const few = 8
	if names := all.Names(); len(names) > 0 && len(names) <= few {
		return fmt.Sprintf("the keys are %s", strings.Join(names, ", "))
	}
	return ""
}

func (p *program) printValue(v any) error {
	if p.json {
		return p.JSON(v)
	}
	text := value.Str(v) + "\n"
	switch v.(type) {
	case *value.Map, *value.List, value.Tuple:
		text = yaml.Dump(v, yaml.DumpOptions{})
	}
	_, err := fmt.Fprint(p.Out, text)
	return err
}

func (p *program) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check the configuration"}
	strict := false
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration file, the environment and the identity of this host",
		Long: `check exits with 2 if the configuration has mistakes, and lists all of them with their positions: invalid stores,
engines that are not installed, and conventions of hostnames that cannot be parsed are among them. It warns of
credentials in URLs of stores, of webhooks that are not http(s), of commands and files for metrics that no run can
use, and of secret files that other users can read or write; with --strict these are mistakes too. An update of the
agent runs check without --strict, so that a warning does not prevent the update.`,
		Example: `  corpus-agent config check --config agent.yaml
  corpus-agent config check --strict`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := p.checkConfig(strict); err != nil {
				return err
			}
			a, err := p.opened(map[string]string{})
			if err != nil {
				return err
			}
			if damaged := a.Config.File.Damaged; damaged != nil {
				return exit.WithCode(exit.Usage, damaged)
			}
			s, err := a.Status()
			if err != nil {
				return err
			}
			id, err := a.Identify(c.Context(), agent.Given{}.Identity, s.Host)
			if err != nil {
				return err
			}
			return p.answer(map[string]any{"identity": id}, "the configuration is valid; this host is "+id.String())
		},
	}
	check.Flags().BoolVar(&strict, "strict", false, "treat warnings as mistakes")
	c.AddCommand(check)
	return c
}

// checkConfig prints the warnings of a configuration and returns its mistakes; with strict, warnings are mistakes.
func (p *program) checkConfig(strict bool) error {
	sources, err := p.sources(map[string]string{})
	if err != nil {
		return err
	}
	mistakes, warnings := config.Check(sources, p.layout().Root)
	if strict {
		mistakes, warnings = append(mistakes, warnings...), nil
	}
	for _, d := range warnings {
		fmt.Fprintln(p.Err, "warning:", d.Text())
	}
	return exit.WithCode(exit.Usage, mistakes.Err())
}

// refusedLine returns a text that says for how long the lock has refused runs, and which process held it.
func refusedLine(r records.Refusals) string {
	line := fmt.Sprintf("%s by the lock, since %s, last %s", diag.Count(r.Count, "run"), when(r.Since), when(r.Last))
	if r.Holder.PID == 0 {
		return line + "; it is not known which process holds it"
	}
	return line + fmt.Sprintf("; %s, process %d, held it", r.Holder.Command, r.Holder.PID)
}
