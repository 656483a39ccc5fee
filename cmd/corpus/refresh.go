package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) refreshCommand() *cobra.Command {
	days, rebuild := 30, false
	c := &cobra.Command{
		Use:   "refresh",
		Short: "Sign anew what expires soon; for a timer",
		Long: `refresh signs the timestamp, and the snapshot where it is due, so that hosts go on believing the store
while nobody publishes. It takes no more than these two keys. Root, targets and projects that expire
within --within days are signed too where their keys are at hand; where not, it says so.

With --rebuild, snapshot and timestamp are made anew out of what targets and projects have signed,
without believing those that are there: after somebody who had their keys, since replaced, spoiled
them, or after the store was restored in part.

Exit codes: 0 everything is signed for longer than --within days; 3 something was left, which needs
other keys (the list says what, and until when it is good); 4 the store does not verify; 5 it cannot
be reached; 2 the keys of snapshot and timestamp are not at hand.`,
		Example: `  corpus refresh --store s3://bucket/prefix --keys online-keys
  corpus refresh --within 45 --json --store s3://bucket/prefix --keys online-keys
  corpus refresh --rebuild --store s3://bucket/prefix --keys online-keys`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if rebuild {
				return p.rebuild(c.Context())
			}
			return p.refresh(c.Context(), time.Duration(days)*24*time.Hour)
		},
	}
	c.Flags().IntVar(&days, "within", 30, "days before its end at which something is signed anew")
	c.Flags().BoolVar(&rebuild, "rebuild", false, "make snapshot and timestamp anew, without believing those that are there")
	return c
}

func (p *program) refresh(ctx context.Context, within time.Duration) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	list, err := publisher.Refresh(ctx, within)
	if err != nil {
		return code(err)
	}
	left := slices.DeleteFunc(slices.Clone(list), func(s publish.Standing) bool { return !s.Left })
	if p.json {
		err = p.JSON(list)
	} else {
		err = p.printStandings(list)
	}
	if err == nil && len(left) > 0 {
		return cli.AlreadyTold(exit.WithCode(exit.Failed, errors.New("something was left")))
	}
	return err
}

func (p *program) printStandings(list []publish.Standing) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	for _, s := range list {
		until, what := "-", ""
		if !s.Expires.IsZero() {
			until = s.Expires.Format("2006-01-02 15:04")
		}
		switch {
		case s.Left:
			what = "NOT RENEWED: " + s.Why
		case s.Renewed:
			what = "renewed"
		}
		fmt.Fprintf(w, "%s\tuntil %s\t%s\n", s.Role, until, what)
	}
	return w.Flush()
}

func (p *program) rebuild(ctx context.Context) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	result, err := publisher.Rebuild(ctx)
	if err != nil {
		return code(err)
	}
	text := "made snapshot and timestamp anew of"
	for _, role := range slices.Sorted(maps.Keys(result.Roles)) {
		text += fmt.Sprintf(" %s %d,", role, result.Roles[role])
	}
	text = strings.TrimSuffix(text, ",")
	if len(result.Lost) > 0 {
		text += "\nnothing is signed by the keys of, and has to be published again: " + strings.Join(result.Lost, ", ")
	}
	return p.answer(result, "%s", text)
}
