package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/rollout/simulate"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// mostSimulated is the maximum number of simulated hosts.
const mostSimulated = 1_000_000

// simulation has the flags of `corpus rollout simulate`.
type simulation struct {
	plan                           planFlags
	params                         simulate.Params
	fails, dead, refused, lost, in string
	patterns                       bool
}

func (p *program) rolloutSimulateCommand() *cobra.Command {
	var s simulation
	c := &cobra.Command{
		Use:   "simulate [PROJECT CHANNEL]",
		Short: "Simulate a rollout: how far a bad release comes, and how long a good one takes",
		Long: `simulate runs a rollout on a virtual clock, with the code by which hosts decide. It runs a release that fails as the flags say
and a good one, and prints how many hosts the bad one reaches before it stops, how long the good one takes, and when which wave
takes each. Nothing is written, and no host is asked.

The virtual clock starts on Mon 2026-01-05 08:00 UTC, which matters for a plan with windows: durations include the time until
the first one opens.

The plan is the one of a channel, or the default one; plan flags change it. The same --seed gives the same hosts, faults and
times. --patterns simulates eight ways to fail instead, and prints a table.

Each host looks for something to do every --tick, and a deploy takes at most --deploy. Regions have the names that --regions
orders, and region1, region2 and so on; clusters are region1-0, region2-1 and so on. Hosts are PROJECT-CHANNEL-region1-1 and so on,
and app-production-region1-1 without a channel.`,
		Example: `  corpus rollout simulate --hosts 10000 --fails 2% --seed 7
  corpus rollout simulate myapp production --hosts 300 --fails 10% --store s3://bucket/prefix --trust-root keys/root.json
  corpus rollout simulate --hosts 500 --fails-in region1 --waves 2%:30m,20%:2h,100% --halt-at 5%
  corpus rollout simulate --hosts 10000 --patterns
  corpus rollout simulate --hosts 100000 --fails-late 30m --dead 1% --outages 2 --json`,
		Args: cli.Args(func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return cobra.ExactArgs(2)(c, args)
		}),
		RunE: func(c *cobra.Command, args []string) error {
			plan := rollout.Default()
			if len(args) == 2 {
				var err error
				if plan, err = p.channelPlan(c.Context(), artifact.Ref{Project: args[0], Channel: args[1]}); err != nil {
					return err
				}
				s.params.Prefix = args[0] + "-" + args[1]
			}
			if err := errors.Join(s.plan.change(&plan), s.read(plan)); err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			if idle := s.params.Idle(); len(idle) > 0 {
				fmt.Fprintf(p.Err, "warning: no simulated host matches %s of the plan (--canary, --last); their names are "+
					"such as %s\n", trust.Printable(strings.Join(idle, ", ")), s.params.Example())
			}
			if s.patterns {
				return p.simulatePatterns(s)
			}
			return p.simulate(s)
		},
	}
	s.addFlags(c)
	return c
}

// addFlags adds the flags of the command.
func (s *simulation) addFlags(c *cobra.Command) {
	s.plan.add(c)
	f := c.Flags()
	f.IntVar(&s.params.Hosts, "hosts", 1000, "hosts of the channel")
	f.Uint64Var(&s.params.Seed, "seed", 1, "what chance makes: the same seed gives the same result")
	f.StringVar(&s.fails, "fails", "", "share of the hosts on which the bad release fails (100% unless another --fails "+
		"flag is given)")
	f.StringVar(&s.in, "fails-in", "", "region or cluster whose hosts it fails on, such as region1 or region1-0")
	f.DurationVar(&s.params.Fails.After, "fails-after", 0, "it fails on hosts that take it later than this after "+
		"the start")
	f.DurationVar(&s.params.Fails.Late, "fails-late", 0, "it is healthy first, and fails so much later")
	f.StringVar(&s.dead, "dead", "0%", "share of the hosts that die while they deploy")
	f.StringVar(&s.refused, "refused", "0%", "share of the requests that the store refuses (503)")
	f.StringVar(&s.lost, "lost", "0%", "share of the writes whose response is lost")
	f.DurationVar(&s.params.Faults.Stale, "stale", 0, "how old a listing of the store may be")
	f.IntVar(&s.params.Faults.Outages, "outages", 0, "times in the first day at which the store is out of reach")
	f.DurationVar(&s.params.Faults.Outage, "outage", time.Hour, "how long each is")
	f.BoolVar(&s.params.Urgent, "urgent", false, "an urgent rollout: no waves")
	f.IntVar(&s.params.Regions, "in-regions", 4, "regions that the hosts are in")
	f.IntVar(&s.params.Cluster, "cluster-hosts", 20, "hosts of each cluster")
	f.DurationVar(&s.params.Tick, "tick", 5*time.Minute, "how often a host looks for something to do")
	f.DurationVar(&s.params.Deploy, "deploy", 3*time.Minute, "how long a deploy takes at most")
	f.BoolVar(&s.patterns, "patterns", false, "simulate eight ways to fail, and print a table")
	for _, name := range []string{"fails", "fails-in", "fails-after", "fails-late"} {
		c.MarkFlagsMutuallyExclusive("patterns", name)
	}
}

// channelPlan reads the plan of a channel. It returns an error if there is none.
func (p *program) channelPlan(ctx context.Context, ref artifact.Ref) (rollout.Plan, error) {
	client, done, err := p.reader(ctx)
	if err != nil {
		return rollout.Plan{}, err
	}
	defer done()
	planned, err := projects.Plan(client, ref)
	if err != nil {
		return rollout.Plan{}, err
	}
	if planned.Plan == nil {
		return rollout.Plan{}, exit.WithCode(exit.Usage, diag.Plan.Hint(fmt.Errorf("%s has no rollout plan", ref),
			"give it one with `corpus project rollout %s %s --waves ...`, or simulate the default one without naming a channel",
			ref.Project, ref.Channel))
	}
	return *planned.Plan, nil
}

// read checks the numbers of a simulation, and returns every mistake in them.
func (s *simulation) read(plan rollout.Plan) error {
	s.params.Plan = plan
	var errs []error
	for _, share := range []struct {
		name, text string
		into       *float64
	}{{"fails", s.fails, &s.params.Fails.Share}, {"dead", s.dead, &s.params.Faults.Dead},
		{"refused", s.refused, &s.params.Faults.Refused}, {"lost", s.lost, &s.params.Faults.Lost}} {
		if share.text == "" {
			continue
		}
		parsed, err := rollout.ParseShare(share.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", share.name, err))
		}
		*share.into = float64(parsed) / float64(rollout.All)
	}
	f := &s.params.Fails
	if s.fails == "" && s.in == "" && f.After == 0 && f.Late == 0 {
		f.Share = 1
	}
	if s.params.Faults.Refused == 1 || s.params.Faults.Lost == 1 {
		errs = append(errs, diag.Plan.Hint(errors.New("with a store that answers no request no rollout ends"),
			"give --refused and --lost less than 100%%"))
	}
	for name, n := range map[string]int{"hosts": s.params.Hosts, "in-regions": s.params.Regions,
		"cluster-hosts": s.params.Cluster} {
		if n < 1 || n > mostSimulated {
			errs = append(errs, diag.Plan.Hint(fmt.Errorf("--%s is %d", name, n), "give 1 to %d", mostSimulated))
		}
	}
	if n := s.params.Faults.Outages; n < 0 || n > 1000 {
		errs = append(errs, diag.Plan.Hint(fmt.Errorf("--outages is %d", n), "give 0 to 1000"))
	}
	return errors.Join(append(errs, s.checkTimes(), s.place())...)
}

// checkTimes returns an error for durations with which a simulation would take hours.
func (s *simulation) checkTimes() error {
	var errs []error
	for name, d := range map[string]time.Duration{"tick": s.params.Tick, "deploy": s.params.Deploy} {
		if d < time.Second || d > 24*time.Hour {
			errs = append(errs, diag.Plan.Hint(fmt.Errorf("--%s is %s", name, d), "give 1s to 24h"))
		}
	}
	for name, d := range map[string]time.Duration{"fails-after": s.params.Fails.After, "fails-late": s.params.Fails.Late,
		"stale": s.params.Faults.Stale, "outage": s.params.Faults.Outage} {
		if d < 0 || d > 30*24*time.Hour {
			errs = append(errs, diag.Plan.Hint(fmt.Errorf("--%s is %s", name, d), "give 0s to 720h"))
		}
	}
	s.params.Most = s.params.Plan.Least() + time.Duration(len(s.params.Plan.Waves)+2)*8*24*time.Hour
	if s.params.Tick < time.Minute {
		s.params.Most = min(s.params.Most, 7*24*time.Hour)
	}
	return errors.Join(errs...)
}

// place parses the region or cluster in which the release fails.
func (s *simulation) place() error {
	if s.in == "" || s.params.Hosts < 1 || s.params.Hosts > mostSimulated || s.params.Regions < 1 || s.params.Cluster < 1 {
		return nil
	}
	regions, clusters := s.params.Places()
	switch {
	case slices.Contains(regions, s.in):
		s.params.Fails.Region = s.in
	case slices.Contains(clusters, s.in):
		s.params.Fails.Cluster = s.in
	default:
		return diag.Plan.Hint(fmt.Errorf("--fails-in: there is no region or cluster %s", trust.Printable(s.in)),
			"there are %s, and clusters such as %s", strings.Join(regions[:min(len(regions), mostNamed)], ", "), clusters[0])
	}
	return nil
}

// simulated is the output of `corpus rollout simulate`.
type simulated struct {
	Plan  rollout.Plan    `json:"plan"`
	Began time.Time       `json:"began"` // on the virtual clock
	Bad   simulate.Result `json:"bad"`
	Good  simulate.Result `json:"good"`
}

// simulatedTime is the format of times of the virtual clock. Windows have days.
const simulatedTime = "Mon 2006-01-02 15:04 MST"

// both simulates a release that fails, and a good one.
func (s *simulation) both() simulated {
	good := s.params
	good.Fails = simulate.Failures{}
	return simulated{Plan: s.params.Plan, Began: simulate.Began(), Bad: simulate.Run(s.params), Good: simulate.Run(good)}
}

func (p *program) simulate(s simulation) error {
	r := s.both()
	if p.json {
		return errors.Join(p.JSON(r), cli.AlreadyReported(r.broken()))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s, seed %d, from %s on the virtual clock\n\na bad release: %s\n",
		diag.Count(r.Bad.Hosts, "host"), diag.Count(len(r.Plan.Waves), "wave"), s.params.Seed,
		r.Began.Format(simulatedTime), badText(r.Bad))
	b.WriteString(picture(r.Plan, r.Bad))
	fmt.Fprintf(&b, "\na good release: %s\n", goodText(r.Good))
	b.WriteString(picture(r.Plan, r.Good))
	_, err := fmt.Fprint(p.Out, b.String())
	return errors.Join(err, r.broken())
}
