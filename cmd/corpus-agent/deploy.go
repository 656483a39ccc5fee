package main

import (
	"cmp"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
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
  corpus-agent deploy --only install,fixperms
  corpus-agent deploy --progress json 2> events`,
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
				given.TrustRoot = cmp.Or(given.TrustRoot, p.Getenv("CORPUS_TRUST_ROOT"))
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
	p.addProgress(flags)
	flags.StringVar(&given.TrustRoot, "trust-root", p.Getenv("CORPUS_TRUST_ROOT"),
		"copy of the keys/root.json that corpus store init wrote, or sha256:HEX of it; needed once")
	flags.StringVar(&given.Identity.Region, "region", "", "region of this host, if its name does not contain it")
	flags.StringVar(&given.Identity.Node, "node", "", "node of this host, if its name does not contain it")
	return c
}

// now runs deploy --now. It takes no other flags, since the timer's run has none.
func (p *program) now(c *cobra.Command) error {
	other := c.Flags().NArg() > 0 || p.store != ""
	for _, name := range []string{"editable", "test", "ahead", "only", "set", "trust-root", "region", "node", "progress"} {
		other = other || c.Flags().Changed(name)
	}
	if other {
		return exit.WithCode(exit.Usage,
			diag.Usage.Hint(errors.New("deploy --now runs what the timer would run, and takes no other arguments and flags"),
				"omit --now, or the others"))
	}
	return p.run(false, func(a *agent.Agent) (*report.Report, error) {
		r, inUnit, err := a.DeployNow(c.Context(), p.Getenv("CORPUS_TRUST_ROOT"), func(format string, args ...any) {
			fmt.Fprintf(p.Err, format+"\n", args...)
		})
		if !inUnit || err != nil || r == nil {
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
		return r, exit.WithCode(r.Exit, diag.KeepHint(errors.New(r.Error), r.Hint))
	})
}

func (p *program) identify(args []string, id *grains.Identity) error {
	switch len(args) {
	case 1:
		return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("corpus-agent deploy: INSTANCE is missing"),
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
	return p.printed(r, err)
}

// printed returns the error of a run that may have a report: marked as reported if the report was printed.
func (p *program) printed(r *report.Report, err error) error {
	switch {
	case r == nil || !p.json:
		return err
	case p.unprinted != nil:
		return errors.Join(err, p.unprinted)
	}
	return cli.AlreadyReported(err)
}
