package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) rolloutWatchCommand() *cobra.Command {
	every := time.Duration(0)
	c := &cobra.Command{
		Use:   "watch [PROJECT CHANNEL]",
		Short: "Keep the summaries of rollouts for hosts whose store cannot be listed",
		Long: `watch writes rollouts/PROJECT/CHANNEL/ID/summary.json for a channel's rollout, or for those of all channels: the names of what
hosts said, with the times at which the store got them. Hosts that read the store over plain https or a CDN decide by it. Without a
summary of the last ` + "30m" + ` they keep what they have.

Run it from a timer or in CI at least every 15 minutes, or with --every, where the store can be listed. It takes no key: what a
summary names is signed by hosts. It takes the right to list and read rollouts/ and to write summary.json there.`,
		Example: `  corpus rollout watch --store s3://bucket/prefix --trust-root keys/root.json
  corpus rollout watch myapp production --every 5m --store s3://bucket/prefix --trust-root keys/root.json`,
		Args: cli.Args(func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return cobra.ExactArgs(2)(c, args)
		}),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("every") && (every < 10*time.Second || every > hosts.SummaryAge/2) {
				return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("--every is %s", every), "give 10s to %s",
					hosts.SummaryAge/2))
			}
			var ref *artifact.Ref
			if len(args) == 2 {
				ref = &artifact.Ref{Project: args[0], Channel: args[1]}
			}
			if every == 0 {
				return p.summarize(c.Context(), ref)
			}
			return p.watch(c.Context(), ref, every)
		},
	}
	c.Flags().DurationVar(&every, "every", 0, "write again and again, so often, until it is interrupted; once by default")
	return c
}

// watch summarizes until the context ends. A round that fails is reported, and the next one tries again.
func (p *program) watch(ctx context.Context, ref *artifact.Ref, every time.Duration) error {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		if err := p.summarize(ctx, ref); err != nil && ctx.Err() == nil {
			fmt.Fprintf(p.Err, "warning: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
	}
}

// summarized is a summary that watch wrote.
type summarized struct {
	Ref     artifact.Ref `json:"ref"`
	Rollout string       `json:"rollout"`
	Names   int          `json:"names"`
}

// summarize writes the summary of a channel's rollout, or those of all channels.
func (p *program) summarize(ctx context.Context, ref *artifact.Ref) error {
	client, s, done, err := p.readerAndStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	refs := []artifact.Ref{}
	if ref != nil {
		refs = append(refs, *ref)
	} else if refs, err = rollingOut(ctx, client); err != nil {
		return err
	}
	written := []summarized{}
	var failed []error
	for _, ref := range refs {
		one, err := summarizeOne(ctx, client, s, ref)
		if err != nil {
			failed = append(failed, noRollout(ref, err))
			continue
		}
		written = append(written, one)
		p.explain("%s: a summary of %s", ref, diag.Count(one.Names, "name"))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return p.answer(written, "%s", "wrote "+plural(len(written), "summary", "summaries"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// rollingOut lists the channels that have a rollout and a plan.
func rollingOut(ctx context.Context, client *trust.Client) (refs []artifact.Ref, err error) {
	list, err := client.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		for _, name := range slices.Sorted(maps.Keys(l.Channels)) {
			ref := artifact.Ref{Project: l.Project, Channel: name}
			plan, err := client.Rollout(ref)
			if err != nil {
				return nil, err
			}
			if plan != nil && l.Channels[name].Rollout != nil {
				refs = append(refs, ref)
			}
		}
	}
	return refs, unread(list)
}

func summarizeOne(ctx context.Context, client *trust.Client, s store.Store, ref artifact.Ref) (summarized, error) {
	u, err := loadRollout(ctx, client, s, ref)
	if err == nil {
		err = u.lost
	}
	if err == nil && !u.seen.Summary.IsZero() {
		err = diag.Evidence.Hint(fmt.Errorf("the store of %s cannot be listed, so nothing can be summarized from it", ref),
			"give the URL by which the store is written, such as s3://bucket/prefix, and the right to list it")
	}
	if err != nil {
		return summarized{}, err
	}
	if err := u.rollout.WriteSummary(ctx, s, u.seen, u.now); err != nil {
		return summarized{}, err
	}
	return summarized{Ref: ref, Rollout: u.rollout.Start.ID, Names: len(u.seen.Results) + len(u.seen.Halts)}, nil
}
