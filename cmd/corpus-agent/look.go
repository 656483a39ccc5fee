package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// answer writes a result as JSON, or as text.
func (p *program) answer(result any, text string) error {
	if p.json {
		return p.JSON(result)
	}
	_, err := fmt.Fprintln(p.Out, text)
	return err
}

func (p *program) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Tell what runs on this host, since when, and what is wrong",
		Example: `  corpus-agent status --json`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			s, err := a.Status()
			if err != nil {
				return err
			}
			s.NextRun = a.NextRun(c.Context())
			if err := a.RunningUnits(c.Context(), &s); err != nil {
				s.Drift = append(s.Drift, fmt.Sprintf("what the units run is not known: %v", err))
			}
			if p.json {
				return p.JSON(s)
			}
			return p.printStatus(s)
		},
	}
}

func (p *program) printStatus(s agent.Status) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	say := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, indented("\t", fmt.Sprintf(format, args...)))
	}
	switch {
	case s.Deployed != nil:
		say("deployed", "%s", headline(s))
		if s.Since != nil {
			say("since", "%s", when(*s.Since))
		}
	case s.Bootstrapped:
		say("deployed", "nothing")
	default:
		say("deployed", "nothing; this host has not been told whom to trust")
	}
	for _, c := range s.Channels {
		say("channel", "%s", c)
	}
	if s.Previous != nil {
		say("previous", "%s", s.Previous)
	}
	if s.Store != "" {
		say("store", "%s", storeLine(s))
	}
	if len(s.Expires) > 0 {
		say("signed until", "%s (%s)", s.Expires[0].Expires.Local().Format("2006-01-02 15:04"), s.Expires[0].Role)
	}
	for _, e := range s.Expiring {
		say("expires soon", "%s", e)
	}
	if s.Running != nil {
		say("running", "%s, process %d, since %s", s.Running.Command, s.Running.PID, when(s.Running.Since))
	}
	if r := s.Refused; r != nil {
		say("refused", "%s", refusedLine(*r))
	}
	if s.Unwritable != "" {
		say("disk", "%s; until then runs leave no report", s.Unwritable)
	}
	if s.CutShort != nil {
		say("cut short", "run %s, deploying %s; the next run takes it up again", s.CutShort.Run, s.CutShort.Pair)
	}
	if s.Hold != nil {
		say("held", "%s", strings.TrimSpace("since "+when(s.Hold.Since)+" "+s.Hold.Reason))
	}
	for _, r := range s.Withdrawn {
		say("withdrawn", "%s", strings.TrimSpace(fmt.Sprintf("%s on %s %s", r.Release, r.At.Format("2006-01-02"), r.Reason)))
	}
	for _, b := range s.Quarantined {
		say("quarantined", "%s since run %s: %s", b.What(), b.Run, b.Reason)
	}
	if f := s.Postponed; f != nil {
		say("retried", "%s, from %s on: the host failed it %d times, last in run %s: %s", f.Pair, f.Next.Local().Format("2006-01-02 15:04:05"), f.Failures, f.Run, f.Reason)
	}
	for _, o := range s.Others {
		what := "nothing deployed"
		if o.Deployed != nil {
			what = o.Deployed.String()
			if o.Since != nil {
				what += " since " + when(*o.Since)
			}
		}
		say("project", "%s: %s", o.Name, what)
	}
	for _, u := range s.Units {
		say("unit", "%s", unitLine(u))
	}
	for _, d := range s.Drift {
		say("drift", "%s", d)
	}
	if s.NextRun != nil {
		say("next run", "%s", s.NextRun.Local().Format("2006-01-02 15:04:05"))
	}
	if s.Hidden {
		say("last run", "only root may see it, and whether a run is under way: sudo corpus-agent status")
	}
	if r := s.LastRun; r != nil {
		say("last run", "%s %s %s", r.Command, r.Outcome, when(r.Ended))
		if r.Error != "" {
			say("", "%s", r.Error)
		}
	}
	return w.Flush()
}

// indented is a text whose further lines begin with an indent.
func indented(indent, text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+indent)
}

// storeLine is the store that the next run asks, and the one that the last one asked where that is another.
func storeLine(s agent.Status) string {
	if s.Host.Store == "" || s.Host.Store == s.Store {
		return s.Store
	}
	return fmt.Sprintf("%s, from the next run on; until now %s", s.Store, s.Host.Store)
}

// headline is what is deployed, and what runs in its place.
func headline(s agent.Status) string {
	text := s.Deployed.String()
	if s.Failing != nil {
		text = fmt.Sprintf("%s; the host stays on %s, which failed", text, s.Failing)
	}
	for _, u := range s.Units {
		switch {
		case u.Deployed:
		case u.Release == "":
			text += fmt.Sprintf("; %s runs an earlier release", u.Unit)
		default:
			text += fmt.Sprintf("; %s runs %s", u.Unit, u.Release)
		}
	}
	return text
}

// unitLine says what a unit runs.
func unitLine(u service.Unit) string {
	text := u.Unit + ": " + u.Active
	if u.Release != "" {
		text += ", runs " + u.Release
	}
	if u.Since != nil && u.PID != 0 {
		text += fmt.Sprintf(", process %d since %s", u.PID, when(*u.Since))
	}
	return text
}

// when writes a time with how long ago it was.
func when(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.Local().Format("2006-01-02 15:04:05"), diag.Elapsed(time.Since(t)))
}

func (p *program) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "history",
		Short:   "List the runs that are remembered, newest first",
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
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d changed, %d failed\t%s\t%s\n", r.ID, r.Command, r.Outcome, what, r.States.Changed, r.States.Failed, diag.Elapsed(r.Duration()), r.Fault)
			}
			return w.Flush()
		},
	}
}

func (p *program) grainsCommand() *cobra.Command {
	return p.dataCommand("grains", "Show what is known about this host", func(ctx context.Context, a *agent.Agent) (*value.Map, error) {
		return a.ShowGrains(ctx)
	})
}

func (p *program) pillarCommand() *cobra.Command {
	return p.dataCommand("pillar", "Show this host's pillar", func(ctx context.Context, a *agent.Agent) (*value.Map, error) {
		return a.ShowPillar(ctx)
	})
}

// dataCommand shows a mapping, or one value of it.
func (p *program) dataCommand(name, short string, get func(context.Context, *agent.Agent) (*value.Map, error)) *cobra.Command {
	return &cobra.Command{
		Use:     name + " [KEY]",
		Short:   short,
		Long:    short + ". KEY is one of them; a:b:0 looks inside.",
		Example: fmt.Sprintf("  corpus-agent %s\n  corpus-agent %s a:b", name, name),
		Args:    cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			all, err := get(c.Context(), a)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return p.printValue(all)
			}
			v, ok := value.Lookup(all, args[0], ":")
			if !ok {
				return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("there is no %s %s", name, args[0]), "%s", diag.DidYouMean(args[0], all.Names())))
			}
			return p.printValue(v)
		},
	}
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
	c := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	strict := false
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration file, the environment and who this host is",
		Long: `check ends with 2 where the configuration has mistakes. It warns of credentials in URLs of stores, of webhooks that are not
http(s), and of secret files that other users can read or write; with --strict these are mistakes too. An update of the agent
runs check without it, so that a warning does not keep a host from a new version.`,
		Example: `  corpus-agent config check --config agent.yaml
  corpus-agent config check --strict`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := p.opened(map[string]string{})
			if err != nil {
				return err
			}
			if damaged := a.Config.File.Damaged; damaged != nil {
				return exit.WithCode(exit.Usage, damaged)
			}
			if err := p.exposed(a.Config, strict); err != nil {
				return err
			}
			s, err := a.Status()
			if err != nil {
				return err
			}
			id, err := a.Identify(c.Context(), agent.Given{}.Identity, s.Host)
			if err != nil {
				return err
			}
			return p.answer(map[string]any{"identity": id}, "the configuration is good; this host is "+id.String())
		},
	}
	check.Flags().BoolVar(&strict, "strict", false, "fail where the configuration exposes a secret")
	c.AddCommand(check)
	return c
}

// exposed warns of what a configuration gives to others, or fails because of it.
func (p *program) exposed(c config.Config, strict bool) error {
	err := c.Exposed()
	if err == nil {
		return nil
	}
	var problems diag.List
	if strict || !errors.As(err, &problems) {
		return exit.WithCode(exit.Usage, err)
	}
	for _, d := range problems {
		fmt.Fprintln(p.Err, "warning:", d.Text())
	}
	return nil
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return p.answer(map[string]string{"version": cli.Version}, "corpus-agent "+cli.Version)
		},
	}
}

// refusedLine says for how long the lock has refused runs, and who holds it.
func refusedLine(r agent.Refusals) string {
	line := fmt.Sprintf("%d runs by the lock, since %s, last %s", r.Count, when(r.Since), when(r.Last))
	if r.Holder.PID == 0 {
		return line + "; the process that holds it did not sign it"
	}
	return line + fmt.Sprintf("; %s, process %d, held it", r.Holder.Command, r.Holder.PID)
}
