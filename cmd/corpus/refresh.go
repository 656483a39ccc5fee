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
		Short: "Renew signatures that expire soon; for a timer",
		Long: `refresh signs the timestamp, and the snapshot if it is due, so that hosts keep trusting the store while
nothing is published. It needs only these two keys. Root, targets and projects that expire within --within days
are signed too if their keys are available; otherwise they are listed.

With --rebuild, snapshot and timestamp are made again from what earlier snapshots named: after an attacker with their
keys, which were replaced since, has damaged them, after the store has lost files, or after it was restored in
part. A project whose file is missing stays listed and is reported (exit code 3); its owner exports what remains
of it, signs it and imports it. A lost head of a project is made from the list of all versions beside it, and
roots, roles and pages are restored from the copies in --keys DIR (DIR/seen).

Exit codes: 0 everything is signed for longer than --within days; 3 some roles were not renewed because they need
other keys (the list says which, and when they expire), or files are missing from the store or damaged there; 4 the
store does not verify; 5 it cannot be reached; 2 the keys of snapshot and timestamp are not available, or the store
denies access.`,
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
	c.Flags().IntVar(&days, "within", 30, "renew signatures that expire within this number of days")
	c.Flags().BoolVar(&rebuild, "rebuild", false,
		"make snapshot and timestamp again from what earlier snapshots named")
	return c
}

// denied sets the exit code of a usage error if the store denies access. Timers repeat a run that could not reach
// the store, but waiting does not grant permissions.
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
		return cli.AlreadyReported(exit.WithCode(exit.Failed, errors.New("some roles were not renewed")))
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
	text := "made snapshot and timestamp again from"
	for _, role := range slices.Sorted(maps.Keys(result.Roles)) {
		text += fmt.Sprintf(" %s %d,", role, result.Roles[role])
	}
	text = strings.TrimSuffix(text, ",")
	if len(result.Restored) > 0 {
		text += "\nrestored lost files: " + strings.Join(result.Restored, ", ")
	}
	if len(result.Unnamed) > 0 {
		text += "\nincluded although no remaining snapshot names them, so check the output of `corpus ls`: " +
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
