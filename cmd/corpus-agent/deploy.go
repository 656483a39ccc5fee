package main

import (
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) deployCommand() *cobra.Command {
	var given agent.Given
	test, now := false, false
	editable := ""
	var steps stepFlags
	c := &cobra.Command{
		Use:   "deploy [SERVICE INSTANCE]",
		Short: "Deploy the releases that this host's channels name",
		Long: `deploy reads from the store which releases of base and of the service this host is to run, fetches and
verifies them, converges the host, and makes them current. If there is nothing new it only converges.

A deploy that fails is rolled back to the releases that ran before. The release that caused the failure is
quarantined: it is not deployed again, with any base or service. If the host caused it, for example with a full
disk, the deploy is retried at growing intervals. The identity of the host is derived from its hostname, or given
as SERVICE and INSTANCE if the hostname does not contain it.

On a channel with a rollout a host keeps what it has until its turn, and says so; --ahead takes the release
at once, and what becomes of it counts in the rollout as that of any host.

With --now a host does immediately what its timer would do next: it waits for a run that is under way, then
starts the unit of the timer, and prints its result. The run continues if this command is interrupted.

Exit codes: 0 converged, 2 usage or configuration, 3 states failed, 4 verification refused, 5 store
unreachable, 6 another run is under way, 7 rolled back, 8 rollback failed, 9 the lock refused runs
for longer than the timer's interval, 130 interrupted.`,
		Example: `  corpus-agent deploy --store s3://bucket/prefix --trust-root ./root.json    # a copy of keys/root.json, which corpus store init wrote
  corpus-agent deploy myapp testing --store file:///srv/store --trust-root sha256:650c...
  corpus-agent deploy
  corpus-agent deploy --now
  corpus-agent deploy --test
  corpus-agent deploy --only install,fixperms`,
		Args: cli.Args(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if now {
				return p.now(c)
			}
			if err := steps.parse(&given, p.In); err != nil {
				return err
			}
			if err := p.identify(args, &given.Identity); err != nil {
				return err
			}
			return p.run(test, func(a *agent.Agent) (*report.Report, error) {
				if editable != "" {
					return a.DeployEditable(c.Context(), "", editable, given)
				}
				return a.Deploy(c.Context(), given, test)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&editable, "editable", "",
		"working tree to link as the service's release, in a dev environment; it is unsigned")
	flags.BoolVar(&test, "test", false, "show what would change, and change nothing")
	flags.BoolVar(&given.Ahead, "ahead", false, "take the release though its rollout lets this host wait")
	flags.BoolVar(&now, "now", false, "run now what the timer would run next")
	steps.add(flags)
	flags.StringVar(&given.TrustRoot, "trust-root", p.Getenv("CORPUS_TRUST_ROOT"),
		"copy of the keys/root.json that corpus store init wrote, or sha256:HEX of it; needed once")
	flags.StringVar(&given.Identity.Region, "region", "", "region of this host, if its name does not contain it")
	flags.StringVar(&given.Identity.Node, "node", "", "node of this host, if its name does not contain it")
	return c
}

// now runs deploy --now. It takes no other flags, since the timer's run has none.
func (p *program) now(c *cobra.Command) error {
	other := c.Flags().NArg() > 0 || p.store != ""
	for _, name := range []string{"editable", "test", "ahead", "only", "set", "trust-root", "region", "node"} {
		other = other || c.Flags().Changed(name)
	}
	if other {
		return exit.WithCode(exit.Usage,
			diag.WithHint(errors.New("deploy --now runs what the timer would run, and takes no other arguments and flags"),
				"omit --now, or the others"))
	}
	return p.run(false, func(a *agent.Agent) (*report.Report, error) {
		r, inUnit, err := a.DeployNow(c.Context(), func(format string, args ...any) {
			fmt.Fprintf(p.Err, format+"\n", args...)
		})
		if !inUnit || err != nil {
			return r, err
		}
		settings, err := p.settings(map[string]string{})
		if err != nil {
			return nil, err
		}
		report.Replay(r, p.sink(settings))
		if r.Exit == exit.OK {
			return r, nil
		}
		return r, exit.WithCode(r.Exit, diag.WithHint(errors.New(r.Error), "%s", r.Hint))
	})
}

func (p *program) identify(args []string, id *grains.Identity) error {
	switch len(args) {
	case 1:
		return exit.WithCode(exit.Usage, diag.WithHint(errors.New("corpus-agent deploy: INSTANCE is missing"),
			"write `corpus-agent deploy SERVICE INSTANCE`"))
	case 2:
		id.Service, id.Instance = args[0], args[1]
	}
	return nil
}

// run runs work, which makes a report. The sink of the report prints the result, except for an error before there
// was a report. A dry run does not make the root.
func (p *program) run(test bool, work func(*agent.Agent) (*report.Report, error)) error {
	p.makesRoot = !test
	a, err := p.opened(map[string]string{})
	if err != nil {
		return err
	}
	// A run must not end because its output is no longer read, for example when the connection of a push breaks.
	signal.Ignore(syscall.SIGPIPE)
	r, err := work(a)
	if r != nil && p.json {
		return cli.AlreadyReported(err)
	}
	return err
}

func (p *program) convergeCommand() *cobra.Command {
	test := false
	c := &cobra.Command{
		Use:   "converge",
		Short: "Converge the deployed releases without reading the store",
		Example: `  corpus-agent converge
  corpus-agent converge --test`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.run(test, func(a *agent.Agent) (*report.Report, error) {
				return a.Converge(c.Context(), test)
			})
		},
	}
	c.Flags().BoolVar(&test, "test", false, "show what would change, and change nothing")
	return c
}

func (p *program) rollbackCommand() *cobra.Command {
	to, converge, test := "", false, false
	c := &cobra.Command{
		Use:   "rollback",
		Short: "Roll back to the previous releases",
		Long: `rollback deploys the releases that ran before, without reading the store, and quarantines each release that it
replaces, so that the timer does not deploy it again, with any base or service.

With --to it rolls back to any version of the service that was good and is still on this host, together with
the base that it ran with.

With --converge it first takes back the changes that the states of the newer releases made, except where something
else has changed the same thing since, and lists what it left. Then --to may also be a run: later changes are
taken back. --test shows as a diff what would be taken back.

Without --converge, --test shows which releases would run, be quarantined, and have their units restarted, and what their
states would change.

Exit codes: 0 rolled back, 2 usage, 4 the release to go back to was withdrawn, 6 another run is under way,
7 it failed, and the host runs the same releases as before, 8 not everything could be taken back.`,
		Example: `  corpus-agent rollback --test
  corpus-agent rollback
  corpus-agent rollback --to 1.4
  corpus-agent rollback --converge --test
  corpus-agent rollback --converge
  corpus-agent rollback --converge --to 20260101T120000.000000`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.run(test, func(a *agent.Agent) (*report.Report, error) {
				switch {
				case !converge && test:
					return a.ShowRollback(c.Context(), to)
				case !converge:
					return a.RollbackTo(c.Context(), to)
				}
				r, err := a.RollbackConverge(c.Context(), to, test)
				if test && r != nil && !p.json {
					_, _ = p.Out.Write([]byte(r.Output))
				}
				return r, err
			})
		},
	}
	c.Flags().StringVar(&to, "to", "",
		"version or directory of the service's release to roll back to; with --converge also a run")
	c.Flags().BoolVar(&converge, "converge", false, "also take back the changes that converging made")
	c.Flags().BoolVar(&test, "test", false, "show what would change, and change nothing")
	return c
}

func (p *program) unquarantineCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "unquarantine [VERSION]",
		Short: "Allow releases that failed to be deployed again",
		Long: `unquarantine removes releases from the quarantine, those of VERSION or all, so that the next deploy tries them
again if a channel still names them. A deploy that waits for a retry because the host caused its failure is
retried with the next run.`,
		Example: `  corpus-agent unquarantine 1.4
  corpus-agent unquarantine --all`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return exit.WithCode(exit.Usage, diag.WithHint(errors.New("no release was named"), "name a VERSION, or give --all"))
			}
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			released, err := a.Unquarantine(strings.Join(args, ""))
			if err != nil {
				return err
			}
			var names []string
			var pairs []ledger.Pair
			for _, b := range released {
				names, pairs = append(names, b.What()), append(pairs, b.Pair)
			}
			return p.answer(map[string]any{"released": pairs, "entries": released},
				"may be tried again: "+strings.Join(names, "; "))
		},
	}
	c.Flags().BoolVar(&all, "all", false, "remove all releases from the quarantine")
	return c
}

func (p *program) holdCommand() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "hold",
		Short: "Do not deploy new releases; keep converging the deployed ones",
		Long: `hold stops the deployment of new releases until "corpus-agent unhold"; runs keep converging the deployed ones. It
also works during a run: a deploy that has moved links is finished, any other is not started.`,
		Example: `  corpus-agent hold --reason "load test until Friday"`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return p.edit("held: new releases wait for `corpus-agent unhold`", func(a *agent.Agent) error {
				return a.Hold(reason)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason that the status shows")
	return c
}

func (p *program) unholdCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unhold",
		Short: "Deploy new releases again",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return p.edited(func(a *agent.Agent) (string, error) {
				held, err := a.Unhold()
				if !held {
					return "this host was not held", err
				}
				return "no longer held: the next run deploys what the channels name", err
			})
		},
	}
}

func (p *program) edit(done string, change func(*agent.Agent) error) error {
	return p.edited(func(a *agent.Agent) (string, error) { return done, change(a) })
}

// edited is like edit, for a change that returns its message.
func (p *program) edited(change func(*agent.Agent) (string, error)) error {
	a, err := p.agent(map[string]string{})
	if err != nil {
		return err
	}
	done, err := change(a)
	if err != nil {
		return err
	}
	if s, err := a.Status(); err == nil && s.Running != nil {
		done += fmt.Sprintf("; %s, process %d, is under way and finishes what it has begun", s.Running.Command, s.Running.PID)
	}
	return p.answer(map[string]string{"result": done}, done)
}
