package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/spf13/cobra"
)

func (p *program) rolloutStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status PROJECT CHANNEL",
		Short: "Show how a rollout stands: its waves, what failed, and what comes next",
		Long: `status shows the waves of a channel's rollout with the hosts that are healthy, failed and waiting, each halt with the host that
found the limit reached and its grounds, what people did to the rollout, and what comes next. It counts what hosts count: what the
hosts of the roster signed. It names up to six hosts for which the rollout waits, with what their records show, and hosts that have
the release and of which the store has no result.

It takes the right to list the store below rollouts/, and below fleet/ for the records; where a store cannot be listed, it reads the summary that corpus rollout
watch keeps.`,
		Example: `  corpus rollout status myapp production --store s3://bucket/prefix --trust-root keys/root.json
  corpus rollout status myapp production --json --store s3://bucket/prefix --trust-root keys/root.json`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.rolloutStatus(c.Context(), artifact.Ref{Project: args[0], Channel: args[1]})
		},
	}
}

func (p *program) rolloutStatus(ctx context.Context, ref artifact.Ref) error {
	client, s, done, err := p.readerAndStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	u, err := shownRolloutOf(ctx, client, s, ref)
	if errors.Is(err, errNoRollout) || errors.Is(err, errNoPlan) {
		none := rolloutStatus{Ref: ref, Version: u.version, State: "none", Next: err.Error()}
		return p.answer(none, "%s is %s, and %v", ref, u.version, err)
	}
	if err != nil {
		return err
	}
	r := u.status(ctx, s, u.readRecords(ctx, s))
	return p.answer(r, "%s", strings.TrimRight(r.text(), "\n"))
}

// text returns the state of a rollout as text for people.
func (r rolloutStatus) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: rollout of %s is %s", r.Ref, r.rolledOut(), r.State)
	if r.Start.Urgent {
		b.WriteString(", urgent: it waits for no waves")
	}
	fmt.Fprintf(&b, "\n  next: %s\n", r.Next)
	if r.Ahead {
		fmt.Fprintf(&b, "  it started at %s by the store's clock, which was ahead: hosts do not wait for that time, and "+
			"each wave after the first waits for the healthy hosts of the one before; check the clock of the store\n",
			diag.Stamp(r.Start.At))
	}
	if r.Flooded != "" {
		fmt.Fprintf(&b, "  warning: %s; what hosts signed in the first of them:\n", r.Flooded)
	}
	if r.RosterLost {
		b.WriteString("  the roster is lost or damaged in the store, so its hosts and their results are not known\n")
	}
	r.writeWaves(&b)
	r.writeFailed(&b)
	r.writeRemoved(&b)
	r.writeOtherKeys(&b)
	r.writeBack(&b)
	r.writeWaiting(&b)
	for _, h := range r.Deploying {
		fmt.Fprintf(&b, "  deploys: %s, which holds a place of cluster %s since %s, until %s at most if it has died\n",
			h.Host, h.Cluster, diag.Stamp(h.Since), diag.Stamp(h.Until))
	}
	if r.DeployingMore > 0 {
		fmt.Fprintf(&b, "  and %s taken\n", diag.Count(r.DeployingMore, "more place"))
	}
	r.writeHalts(&b)
	r.writeMoves(&b)
	r.writeRekeyed(&b)
	if r.Ignored > 0 {
		fmt.Fprintf(&b, "  names in the store that count for nothing: %s\n", r.ignored())
		for _, i := range r.IgnoredNames[:min(len(r.IgnoredNames), mostIgnoredNamed)] {
			fmt.Fprintf(&b, "    %s: %s\n", trust.Printable(i.Name), i.Why)
		}
	}
	if !r.Summary.IsZero() {
		fmt.Fprintf(&b, "  from the summary of %s\n", diag.Stamp(r.Summary))
	}
	return b.String()
}

// writeFailed writes the hosts on which the release failed.
func (r rolloutStatus) writeFailed(b *strings.Builder) {
	for _, f := range r.Failed[:min(len(r.Failed), mostNamed)] {
		fmt.Fprintf(b, "  %s: %s in wave %s, run %s at %s\n", f.what(), f.Host, f.Wave, f.Run, diag.Stamp(f.At))
	}
	if more := len(r.Failed) - mostNamed; more > 0 {
		fmt.Fprintf(b, "  and %d more failed\n", more)
	}
}

// writeMoves writes what people did with the rollout.
func (r rolloutStatus) writeMoves(b *strings.Builder) {
	for _, m := range r.Start.Moves {
		by := ""
		if m.Who != "" {
			by = " by " + trust.Printable(m.Who)
		}
		if len(m.By) > 0 {
			by += ", signed with " + shortKeys(m.By)
		}
		fmt.Fprintf(b, "  %s at %s%s\n", trust.Printable(m.Text()), diag.Stamp(m.At), by)
	}
}

// writeRekeyed writes the hosts that do not count since they sign with another key than the roster has.
func (r rolloutStatus) writeRekeyed(b *strings.Builder) {
	again := "the next rollout counts it"
	if !r.over {
		again = fmt.Sprintf("then corpus point %s %s %s, which starts the rollout again", r.Ref.Project, r.Ref.Channel,
			r.Version)
	}
	for _, host := range r.Rekeyed[:min(len(r.Rekeyed), mostNamed)] {
		if r.names(host) {
			continue // its line says so
		}
		fmt.Fprintf(b, "  not counted: %s, which signs with another key than in the roster: corpus host show %s; if the "+
			"machine lost its key or was replaced, and that lists two keys: corpus host forget %s; %s\n",
			host, host, host, again)
	}
	if more := len(r.Rekeyed) - mostNamed; more > 0 {
		fmt.Fprintf(b, "  and %d more are not counted\n", more)
	}
}

// writeWaves writes the table of waves, if their progress is known.
func (r rolloutStatus) writeWaves(b *strings.Builder) {
	if len(r.Waves) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "  wave\tshare\thosts\thealthy\tfailed\twaiting\tits hosts\n")
	for _, wave := range r.Waves {
		why := "may take it"
		switch {
		case wave.Waiting == 0:
			why = "have finished"
		case !wave.Open:
			why = "wait: " + wave.Why
		case wave.Waiting == wave.Lacking:
			why = "have it, and the store has no result of them"
		case wave.Lacking > 0:
			why = fmt.Sprintf("may take it; %d have it without a result", wave.Lacking)
		}
		fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%d\t%d\t%s\n", trust.Printable(wave.Name), wave.Share, wave.Hosts, wave.Healthy,
			wave.Failed, wave.Waiting, why)
	}
	_ = w.Flush() // a strings.Builder never returns an error
}

// rolledOut returns the version that is rolled out, also after an abort, or the digest of its release if the version is
// not known.
func (r rolloutStatus) rolledOut() string {
	switch {
	case !r.Start.Aborted:
		return r.Version
	case r.Brings != "":
		return r.Brings
	}
	return artifact.Digest(r.Start.Release).Short()
}

// mostIgnoredNamed bounds the names that count for nothing in the text.
const mostIgnoredNamed = 3

// ignored returns the number of invalid names, or its lower limit.
func (r rolloutStatus) ignored() string {
	if r.Ignored < hosts.MostIgnored {
		return strconv.Itoa(r.Ignored)
	}
	return fmt.Sprintf("%d or more", r.Ignored)
}
