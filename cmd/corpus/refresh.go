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
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
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

With --rebuild, snapshot and timestamp are made again, out of what snapshots have named before: after a
thief of their keys, since replaced, spoiled them, after the store lost files, or was restored in part.
A project whose file is missing keeps its place and is named (exit code 3); its owner exports what is
left of it, signs it and imports it. A lost head of a project is made of the list of all versions beside
it, and roots, roles and pages are put back from what --keys DIR has kept of them (DIR/seen).

Exit codes: 0 everything is signed for longer than --within days; 3 something was left, which needs
other keys (the list says what, and until when it is good), or is missing from the store; 4 the store does not verify; 5 it cannot
be reached; 2 the keys of snapshot and timestamp are not at hand, or the store denies access.`,
		Example: `  corpus refresh --store s3://bucket/prefix --keys online-keys
  corpus refresh --within 45 --json --store s3://bucket/prefix --keys online-keys
  corpus refresh --rebuild --store s3://bucket/prefix --keys online-keys`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if rebuild {
				return denied(p.rebuild(c.Context()))
			}
			return denied(p.refresh(c.Context(), time.Duration(days)*24*time.Hour))
		},
	}
	c.Flags().IntVar(&days, "within", 30, "days before its end at which something is signed anew")
	c.Flags().BoolVar(&rebuild, "rebuild", false,
		"make snapshot and timestamp again, out of what snapshots have named before")
	return c
}

// denied gives a refusal of the store the exit code of a mistake in the settings: timers repeat a run that could not reach
// the store, and waiting grants no permission.
func denied(err error) error {
	if errors.Is(err, store.ErrForbidden) {
		return exit.WithCode(exit.Usage, err)
	}
	return err
}

func (p *program) refresh(ctx context.Context, within time.Duration) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	list, err := refresh.Roles(ctx, publisher, within)
	if err != nil {
		return code(err)
	}
	left := slices.DeleteFunc(slices.Clone(list), func(s refresh.Standing) bool { return !s.Left })
	if p.json {
		err = p.JSON(list)
	} else {
		err = p.printStandings(list)
	}
	if err == nil && len(left) > 0 {
		return cli.AlreadyReported(exit.WithCode(exit.Failed, errors.New("something was left")))
	}
	return err
}

func (p *program) printStandings(list []refresh.Standing) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	for _, s := range list {
		until, what := "-", ""
		if !s.Expires.IsZero() {
			until = s.Expires.Format("2006-01-02 15:04 MST")
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
	result, err := recovery.Rebuild(ctx, publisher)
	if err != nil {
		return code(err)
	}
	text := "made snapshot and timestamp again of"
	for _, role := range slices.Sorted(maps.Keys(result.Roles)) {
		text += fmt.Sprintf(" %s %d,", role, result.Roles[role])
	}
	text = strings.TrimSuffix(text, ",")
	if len(result.Restored) > 0 {
		text += "\nput back what the store had lost: " + strings.Join(result.Restored, ", ")
	}
	if len(result.Unnamed) > 0 {
		text += "\ntaken although no snapshot is left that names them, so compare `corpus ls` with what it should be: " +
			strings.Join(result.Unnamed, ", ")
	}
	for _, m := range result.Missing {
		project, _ := trust.IsHead(m.Role)
		text += fmt.Sprintf("\nMISSING: %s %d: %s; hosts of %s keep what they run until its owner runs\n"+
			"  corpus export %s -o %s.draft; corpus sign %s.draft; corpus import %s.draft", m.Role, m.Version, m.Why, project,
			project, project, project, project)
	}
	for _, page := range result.Pages {
		text += fmt.Sprintf(
			"\nMISSING: %s: restore it from a backup or a mirror of the store; hosts follow the channels without it", page)
	}
	if err := p.answer(result, "%s", text); err != nil || len(result.Missing)+len(result.Pages) == 0 {
		return err
	}
	return cli.AlreadyReported(exit.WithCode(exit.Failed, errors.New("something is missing")))
}
