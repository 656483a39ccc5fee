package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) listCommand() *cobra.Command {
	why := false
	c := &cobra.Command{
		Use:   "ls",
		Short: "List projects, channels and versions of a store",
		Long: `ls lists what is signed. With --why it shows below each channel which digest it names, which key signed the
pointer, what the channel requires, and the proof that it carries: its digest, the channel where it was
healthy, the hosts that reported it healthy and when, and the key that attested it; or why hosts refuse it.
--json has all of it under grounds.

A project that cannot be read is listed as such with the others, and the exit code is that of its error. A store
that went back in time, such as one that was restored from an older copy, is refused. This is detected with what
publishers with --keys have seen of it, or else earlier commands of this user (below $XDG_CACHE_HOME/corpus or
~/.cache/corpus).

The first line is the date on which the first signature that hosts need expires. In the last third of a
signature's lifetime, a warning names it and the command that renews it.`,
		Example: `  corpus ls --store s3://bucket/prefix --trust-root keys/root.json
  corpus ls --why --store s3://bucket/prefix --trust-root keys/root.json
  corpus ls --why --json --store s3://bucket/prefix --trust-root keys/root.json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, done, err := p.reader(c.Context())
			if err != nil {
				return err
			}
			defer done()
			list, err := client.List(c.Context())
			if err != nil {
				return err
			}
			expiries := client.Expiries()
			for _, e := range trust.Expiring(expiries, time.Now()) {
				fmt.Fprintf(p.Err, "warning: %s\n", e)
			}
			if p.json {
				return errors.Join(p.JSON(list), cli.AlreadyReported(unread(list)))
			}
			fmt.Fprintf(p.Out, "signed until %s (%s)\n", expiries[0].Expires.Format("2006-01-02 15:04 MST"), expiries[0].Role)
			return errors.Join(p.printList(list, why), unread(list))
		},
	}
	c.Flags().BoolVar(&why, "why", false, "show why channels may point where they do")
	return c
}

func (p *program) printList(list []trust.Listing, why bool) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	for _, l := range list {
		if l.Err != nil {
			fmt.Fprintf(w, "%s\tcannot be read\n", l.Project)
			continue
		}
		if l.Serial == 0 {
			fmt.Fprintf(w, "%s\tnothing is published\n", l.Project)
			continue
		}
		fmt.Fprintf(w, "%s\tsigned until %s\n", l.Project, l.Expires.Format("2006-01-02"))
		for _, name := range slices.Sorted(maps.Keys(l.Channels)) {
			version := l.Channels[name].Version
			// No tab: a column of its own here would widen those of the versions below.
			fmt.Fprintf(w, "  %s/%s\t%s%s\n", l.Project, name, version, withdrawn(l, version, "  "))
			if why {
				printGrounds(w, l, name)
			}
		}
		for _, r := range l.Releases {
			fmt.Fprintf(w, "  %s\t%s\t%s%s\n", r.Version, diag.Size(r.Length), r.Digest, withdrawn(l, r.Version, "\t"))
		}
	}
	return w.Flush()
}

// unread returns the errors of the projects that could not be read.
func unread(list []trust.Listing) error {
	var errs []error
	for _, l := range list {
		if l.Err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", l.Project, l.Err))
		}
	}
	return errors.Join(errs...)
}

// withdrawn returns the text that follows a withdrawn version, with before in front of it; "" for other versions.
func withdrawn(l trust.Listing, version, before string) string {
	yank, ok := l.Yanked[version]
	if !ok {
		return ""
	}
	return before + strings.TrimSpace("withdrawn "+yank.At.Format("2006-01-02")+" "+trust.Printable(yank.Reason))
}
