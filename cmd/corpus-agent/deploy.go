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
		Short: "Bring this host to what its channels name",
		Long: `deploy asks the store which releases of base and of the service this host is to run, fetches and
verifies them, converges the host, and makes them current. When there is nothing new it only converges.

A deploy that fails puts the host back on what ran before. The release at fault is quarantined: it is not
deployed again, whatever base or service it is paired with. Where the host is at fault, such as by a full
disk, the deploy is retried at growing intervals. Who this host is comes from its hostname; SERVICE and
INSTANCE say it where the hostname does not.

On a channel with a rollout a host keeps what it has until its turn, and says so; --ahead takes the release
at once, and what becomes of it counts in the rollout as that of any host.

With --now a host does at once what its timer would do next: it waits for a run that is under way, then
starts the unit that the timer starts, and tells how that ended. The run goes on if whoever waits is gone.

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
	flags.BoolVar(&now, "now", false, "do what the timer would do next, without waiting for its turn")
	steps.add(flags)
	flags.StringVar(&given.TrustRoot, "trust-root", p.Getenv("CORPUS_TRUST_ROOT"),
		"copy of the keys/root.json that corpus store init wrote, or sha256:HEX of it; needed once")
	flags.StringVar(&given.Identity.Region, "region", "", "region of this host, where its name does not say")
	flags.StringVar(&given.Identity.Node, "node", "", "node of this host, where its name does not say")
	return c
}

// now is deploy --now. It takes nothing else, since the timer's run is told nothing either.
func (p *program) now(c *cobra.Command) error {
	other := c.Flags().NArg() > 0 || p.store != ""
	for _, name := range []string{"editable", "test", "ahead", "only", "set", "trust-root", "region", "node"} {
		other = other || c.Flags().Changed(name)
	}
	if other {
		return exit.WithCode(exit.Usage,
			diag.WithHint(errors.New("deploy --now does what the timer would do, and nothing else can be said with it"),
				"leave out --now, or the rest"))
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

// run runs what makes a report. Its sink has told how it ended, but for what failed before there
// was a report. A dry run makes no root.
func (p *program) run(test bool, work func(*agent.Agent) (*report.Report, error)) error {
	p.makesRoot = !test
	a, err := p.opened(map[string]string{})
	if err != nil {
		return err
	}
	// A run that is under way is worth more than whoever watches it: one who pushes, and whose
	// connection breaks, must not end it.
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
		Short: "Converge what is deployed; the store is not asked",
		Example: `  corpus-agent converge
  corpus-agent converge --test`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			patient()
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
		Short: "Go back to the previous releases",
		Long: `rollback deploys the releases that ran before, without asking the store, and quarantines each one that
it goes back from, so that the timer does not bring it back, with no other base or service either.

With --to it goes back to any version of the service that was good and is still on this host, together
with the base that it ran with.

With --converge it first takes back what the states of the newer releases changed, as far as nothing
else has changed it since, and says what stays. Then --to may also be a run, whose changes are the last
to stay. --test shows as a diff what would be taken back.

Without --converge, --test shows which releases would run, be quarantined, and have their units restarted, and what their
states would change.

Exit codes: 0 rolled back, 2 usage, 4 the release to go back to was withdrawn, 6 another run is under way,
7 it failed, and the host is back on what ran, 8 not everything could be taken back.`,
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
		"version, or directory, of the service's release to go back to; with --converge also a run")
	c.Flags().BoolVar(&converge, "converge", false, "take back what converging changed as well")
	c.Flags().BoolVar(&test, "test", false, "show what would change, and change nothing")
	return c
}

func (p *program) unquarantineCommand() *cobra.Command {
	all := false
	c := &cobra.Command{
		Use:   "unquarantine [VERSION]",
		Short: "Let releases that failed be tried again",
		Long: `unquarantine takes releases out of the quarantine, so that the next deploy tries them again where a
channel still names them: those of VERSION, or all of them. A deploy that waits for its next retry because
the host failed it is due at once.`,
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
	c.Flags().BoolVar(&all, "all", false, "all that is quarantined")
	return c
}

func (p *program) holdCommand() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "hold",
		Short: "Keep new releases away; what is deployed goes on converging",
		Long: `hold keeps new releases away until "corpus-agent unhold"; what is deployed goes on converging. It works
while a run is under way, too: a deploy that has moved links is finished, any other waits.`,
		Example: `  corpus-agent hold --reason "load test until Friday"`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return p.edit("held: new releases wait for `corpus-agent unhold`", func(a *agent.Agent) error {
				return a.Hold(reason)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the status")
	return c
}

func (p *program) unholdCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unhold",
		Short: "Let new releases in again",
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

// edited is edit for a change that says what it did.
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
