package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// silentAfter is the age of a host's newest report from which the host counts as silent. The timer of a host runs every
// five minutes.
const silentAfter = time.Hour

// watchEvery is the default interval of `corpus fleet --watch`, and shortestWatch is its minimum.
const (
	watchEvery    = 30 * time.Second
	shortestWatch = time.Second
)

// fleetOptions has the flags of `corpus fleet`.
type fleetOptions struct {
	project, channel string
	behind           bool
	silent           time.Duration
	watch            bool
	every            time.Duration // with watch
	metrics, html    string        // files of metrics and pages; "" for none
	reports          int           // number of hosts whose runs are shown on pages
}

func (p *program) fleetCommand() *cobra.Command {
	var o fleetOptions
	c := &cobra.Command{
		Use:   "fleet",
		Short: "Show how all hosts are",
		Long: `fleet shows projects, channels and versions with how many hosts have them, and then what needs a person, the most urgent
first. Hosts that upload reports (reports.upload) keep a record of how they are in the store, signed with their key.

A row counts the hosts that have its version: HOSTS, and of these HEALTHY (their newest run did not fail, and they are not silent),
HELD, DRIFTED (their last run corrected them), BEHIND (the channel names another version) and SILENT (no report for an hour, or for
--silent). A host may be in several of these columns. FAILED, ROLLED BACK and QUARANTINED count the hosts on which the version failed,
whatever they have now: such a host is in HOSTS of the row of the version that it has. A star marks what the channel names.

--metrics writes the same numbers as OpenMetrics text, for the textfile collector of Prometheus's node exporter. --html writes
static pages of the fleet, its projects, hosts, runs and releases into a directory, or into a store where it is a URL; they load
nothing from elsewhere. With either of them no table is shown.

It takes the right to list the store. A thousand hosts are one request, and another one for their keys where these changed
since the last look.`,
		Example: `  corpus fleet --store s3://bucket/prefix --trust-root keys/root.json
  corpus fleet --project myapp --channel production --store s3://bucket/prefix --trust-root keys/root.json
  corpus fleet --behind --store s3://bucket/prefix --trust-root keys/root.json
  corpus fleet --silent 1h --json --store s3://bucket/prefix --trust-root keys/root.json
  corpus fleet --metrics /var/lib/node_exporter/fleet.prom --store s3://bucket/prefix --trust-root keys/root.json
  corpus fleet --html ./pages --store s3://bucket/prefix --trust-root keys/root.json
  corpus fleet --html s3://bucket/pages --store s3://bucket/prefix --trust-root keys/root.json
  corpus fleet --watch --every 1m --store s3://bucket/prefix --trust-root keys/root.json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("silent") && o.silent <= 0 {
				return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("--silent is not more than nothing"),
					"say how long a host has to be silent, such as --silent 1h"))
			}
			if c.Flags().Changed("every") && !o.watch {
				return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("--every is for --watch"), "give --watch as well"))
			}
			if o.every < shortestWatch {
				return exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("--every is less than a second"),
					"each look lists the store; give --every 30s or more for a large fleet"))
			}
			return p.fleet(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.project, "project", "", "only hosts of this project")
	flags.StringVar(&o.channel, "channel", "", "only hosts that follow this channel of their project")
	flags.BoolVar(&o.behind, "behind", false, "only hosts that do not have what their channels name")
	flags.DurationVar(&o.silent, "silent", 0, "only hosts that have not reported for so long, such as 1h")
	flags.BoolVar(&o.watch, "watch", false, "look again, every 30 seconds or --every, until interrupted")
	flags.DurationVar(&o.every, "every", watchEvery, "with --watch, how often to look")
	flags.StringVar(&o.metrics, "metrics", "", "write the numbers as OpenMetrics text into this file")
	flags.StringVar(&o.html, "html", "", "write pages into this directory, or the store with this URL")
	flags.IntVar(&o.reports, "reports", 300, "with --html, show the runs of so many hosts, those that need a person first")
	return c
}

// fleet shows the fleet, once or repeatedly.
func (p *program) fleet(ctx context.Context, o fleetOptions) error {
	look, done, err := p.fleetLook(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	if err := p.lookOnce(ctx, look, o); err != nil || !o.watch {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.every):
		}
		// A store that does not answer for a while does not end the watch: the last output stays, with the time of the
		// failure.
		if err := p.lookOnce(ctx, look, o); err != nil && ctx.Err() == nil {
			fmt.Fprintf(p.Err, "%s: %v\n", diag.Stamp(time.Now()), err)
		}
	}
}

// lookOnce reads the records of the fleet, and shows them or writes the files of --html and --metrics.
func (p *program) lookOnce(ctx context.Context, look lookAtFleet, o fleetOptions) error {
	v, write, err := look(ctx)
	if err != nil {
		return err
	}
	if o.html != "" || o.metrics != "" {
		return write()
	}
	return p.redrawFleet(v, o)
}

// redrawFleet shows a view of the fleet. On a watched terminal it replaces the one before.
func (p *program) redrawFleet(v *fleet.View, o fleetOptions) error {
	if f := cli.File(p.Out); o.watch && f != nil && cli.Terminal(p.Out) && !p.json {
		_, _ = io.WriteString(f, "\x1b[H\x1b[2J") // an error of a closed terminal is ignored
	}
	if o.watch && !p.json {
		fmt.Fprintf(p.Out, "%s\n\n", diag.Stamp(v.At))
	}
	return p.showFleet(v, o)
}

// lookAtFleet reads the records of the fleet. The returned function writes the files of --html and --metrics.
type lookAtFleet func(context.Context) (v *fleet.View, write func() error, err error)

// fleetLook opens the store and returns a function that reads the fleet. Each call relies on the host keys that the
// call before has seen.
func (p *program) fleetLook(ctx context.Context, o fleetOptions) (look lookAtFleet, done func(), err error) {
	client, s, done, err := p.readerAndStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := p.recallKeys()
	first := true
	return func(ctx context.Context) (*fleet.View, func() error, error) {
		if !first {
			if err := client.Refresh(ctx); err != nil {
				return nil, nil, err
			}
		}
		first = false
		list, err := client.List(ctx)
		if err != nil {
			return nil, nil, err
		}
		q := o.query(s, list, known.registry(time.Now()), client.StoreTime())
		q.Keys = p.hostKeys(func(context.Context) (*trust.Client, error) { return client, nil })
		v, err := fleet.Look(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		if err := o.check(v, list); err != nil {
			return nil, nil, err
		}
		if v.Fresh {
			known.keep(p, v.Known, time.Now())
		}
		write := func() error {
			if o.html != "" {
				err = p.writePages(ctx, s, client, v, list, o)
			}
			return errors.Join(err, p.writeMetrics(v, o.metrics))
		}
		if err := v.Explain(ctx, s); err != nil {
			return nil, nil, err
		}
		stopped, err := stoppedRollouts(ctx, client, s, v, o.all())
		if err != nil {
			return nil, nil, err
		}
		v.Attention = slices.Concat(unreadable(list, o.project), stopped, v.Attention)
		fleet.Code(v.Attention)
		return v, write, nil
	}, done, nil
}

// all reports whether the options select all hosts.
func (o fleetOptions) all() bool {
	return o.project == "" && o.channel == "" && !o.behind && o.silent == 0
}

// allOf returns the hosts of a view if the options select all hosts of a project, and nil if not.
func (o fleetOptions) allOf(project string, hosts []fleet.Host) []fleet.Host {
	if o.project == project {
		o.project = ""
	}
	if !o.all() {
		return nil
	}
	return hosts
}

// check returns an error for a project or a channel that is neither in the store nor followed by a host. An empty table
// would mean that all hosts are well.
func (o fleetOptions) check(v *fleet.View, list []trust.Listing) error {
	if len(v.Hosts) > 0 || o.project == "" && o.channel == "" {
		return nil
	}
	found := slices.ContainsFunc(list, func(l trust.Listing) bool { return o.project == "" || l.Project == o.project })
	if !found {
		return diag.Unpublished.Hint(fmt.Errorf("%w: %s", trust.ErrNoProject, trust.Printable(o.project)),
			"`corpus ls` lists the projects")
	}
	found = slices.ContainsFunc(list, func(l trust.Listing) bool {
		_, there := l.Channels[o.channel]
		return there && (o.project == "" || l.Project == o.project)
	})
	if o.channel == "" || found {
		return nil
	}
	return diag.Unpublished.Hint(fmt.Errorf("%w: %s", trust.ErrNoChannel, trust.Printable(o.channel)),
		"`corpus ls` lists the channels")
}

// writeMetrics replaces the metrics file atomically.
func (p *program) writeMetrics(v *fleet.View, file string) error {
	if file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := v.WriteMetrics(&b); err != nil {
		return err
	}
	if err := durable.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return exit.WithCode(exit.Usage, diag.Output.Hint(fmt.Errorf("writing the figures of the fleet: %w", err),
			"give --metrics a file in a directory that you may write"))
	}
	return p.answer(metricsWritten{file, len(v.Hosts)}, "wrote figures of %s: %s", hostCountOf(len(v.Hosts)), file)
}

// metricsWritten is the output of `corpus fleet --metrics`.
type metricsWritten struct {
	File  string `json:"file"`
	Hosts int    `json:"hosts"`
}
