package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/fleet/pages"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/history"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) historyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history PROJECT [CHANNEL]",
		Short: "Show how channels moved: when, to which release, and who moved them",
		Long: `history shows the moves of a project's channels, the newest first: promote, point, publish, back and abort, by which a channel came
to name a release, and pause, resume, skip-wave and urgent of its rollouts. WHO is the name that the person gave (--by), and KEYS are
the keys that were at hand to sign it.

Moves come from the project's metadata and the 30 versions before it, which stay in the store until corpus gc removes them. A
question mark stands where that metadata is not signed with keys that may sign the project now: after such a key was replaced, or
since another user wrote it. Moves that older programs signed have no name.`,
		Example: `  corpus history myapp production --store s3://bucket/prefix --trust-root keys/root.json
  corpus history myapp --json --store s3://bucket/prefix --trust-root keys/root.json`,
		Args: cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			channel := ""
			if len(args) > 1 {
				channel = args[1]
			}
			return p.history(c.Context(), args[0], channel)
		},
	}
}

func (p *program) history(ctx context.Context, project, channel string) error {
	client, s, done, err := p.readerAndStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if !slices.Contains(client.Projects(), project) {
		return diag.Unpublished.Hint(fmt.Errorf("%w: %s", trust.ErrNoProject, trust.Printable(project)),
			"`corpus ls` lists the projects")
	}
	l, err := client.ListOne(ctx, project)
	if err != nil {
		return err
	}
	moves, err := history.Read(ctx, s, client, l)
	if err != nil {
		return err
	}
	if channel != "" {
		moves = slices.DeleteFunc(moves, func(m history.Move) bool { return m.Ref.Channel != channel })
	}
	if _, there := l.Channels[channel]; channel != "" && !there && len(moves) == 0 {
		return diag.Unpublished.Hint(fmt.Errorf("%w: %s", trust.ErrNoChannel, trust.Printable(project+"/"+channel)),
			"`corpus ls` lists the channels")
	}
	if p.json {
		return p.JSON(append([]history.Move{}, moves...))
	}
	return p.printMoves(moves)
}

func (p *program) printMoves(moves []history.Move) error {
	if len(moves) == 0 {
		_, err := fmt.Fprintln(p.Out, "no channel has moved yet")
		return err
	}
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WHEN\tCHANNEL\tMOVE\tVERSION\tWHO\tKEYS")
	for _, m := range moves {
		move := m.Text()
		if !m.Verified {
			move += " ?"
		}
		keys := ""
		if len(m.By) > 0 {
			keys = shortKeys(m.By)
		}
		line := []string{diag.Stamp(m.At), m.Ref.String(), move, cmp.Or(m.Version, m.Digest, "-"), cmp.Or(m.Who, "-"), keys}
		for i := range line {
			line[i] = trust.Printable(line[i])
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(line, "\t"), "\t"))
	}
	return w.Flush()
}

// histories returns the moves of a project's channels for the pages.
func histories(ctx context.Context, s store.Store, client *trust.Client, l trust.Listing) ([]pages.History, error) {
	moves, err := history.Read(ctx, s, client, l)
	if err != nil {
		return nil, err
	}
	byChannel := map[string][]pages.Move{}
	for _, m := range moves {
		if artifact.CheckChannel(m.Ref.Channel) != nil {
			continue
		}
		byChannel[m.Ref.Channel] = append(byChannel[m.Ref.Channel], pages.Move{
			At: m.At, What: trust.Printable(m.Text()), Version: trust.Printable(m.Version), Digest: trust.Printable(m.Digest),
			Who: trust.Printable(m.Who), Points: m.Points, Verified: m.Verified,
		})
	}
	var out []pages.History
	for channel, moves := range byChannel {
		out = append(out, pages.History{Ref: artifact.Ref{Project: l.Project, Channel: channel}, Moves: moves})
	}
	return out, nil
}
