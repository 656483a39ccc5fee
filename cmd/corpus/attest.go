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
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) attestCommand() *cobra.Command {
	var count counted
	renew := false
	c := &cobra.Command{
		Use:   "attest PROJECT CHANNEL [VERSION]",
		Short: "Sign that hosts of a channel reported a release healthy",
		Long: `attest reads the reports that hosts put into the store, and signs that the release which the channel
names, or VERSION, was healthy on hosts of that channel. Channels that require this (corpus project
require) include the proof when the release is promoted to them.

The newest report of each host about the release counts. A host on which the release failed stops the
attestation, unless --except names it. A run below another root (corpus-agent --root DIR) restarts no units
and runs no probes, so it counts only with --allow-other-root, and the proof says so. The channels that
require the proof set how many hosts must report and how old the reports may be.

A report does not count if its signature is invalid, or if it is unsigned and its host has a registered key
(corpus host ls). Reports of hosts without a registered key count unless a channel requires signed ones
(corpus project require --signed).

attest needs the attestation key, and permission to read below reports/ and to write below attestations/.
If several keys must sign, each of their owners runs attest.

--renew reads no reports: it signs again, with a later expiry, the proofs of this channel that other
channels carry. Then corpus promote PROJECT TO TO updates the channel TO.`,
		Example: `  corpus attest myapp testing --store s3://bucket/prefix --keys keys
  corpus attest myapp testing 1.0 --except myapp-testing-3 --store s3://bucket/prefix --keys keys
  corpus attest myapp testing --renew --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.RangeArgs(2, 3)),
		RunE: func(c *cobra.Command, args []string) error {
			ref := artifact.Ref{Project: args[0], Channel: args[1]}
			if renew {
				return p.renewProofs(c.Context(), ref)
			}
			return p.attest(c.Context(), ref, strings.Join(args[2:], ""), count)
		},
	}
	cli.RepeatedVar(c.Flags(), &count.except, "except", "", "host whose failure does not count; may be repeated")
	c.Flags().BoolVar(&count.otherRoot, "allow-other-root", false,
		"count runs below another root (corpus-agent --root) as well")
	c.Flags().BoolVar(&renew, "renew", false, "sign the proofs that channels carry again")
	return c
}

// counted selects the reports that count for a proof.
type counted struct {
	except    []string // hosts whose failures are ignored
	otherRoot bool     // runs below another root count
	signed    bool     // unsigned reports do not count
}

func (p *program) attest(ctx context.Context, ref artifact.Ref, version string, count counted) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	about, err := proofs.Prepare(ctx, publisher, ref, version)
	if err != nil {
		return code(err)
	}
	now := time.Now()
	answer, err := fleet.Ask(ctx, publisher.Store, p.hostKeys(publisherClient(publisher)), fleet.Question{
		Channel: ref, Digest: about.Release.Digest, Since: now.Add(-about.Demand.FreshFor()),
		Until: now.Add(trust.ClockTolerance),
	})
	if err != nil {
		return err
	}
	for _, i := range answer.Ignored {
		p.explain("run %s of %s does not count: %s", trust.Printable(i.Run), trust.Printable(i.Host), trust.Printable(i.Why))
	}
	count.signed = about.Demand.Signed
	hosts, err := p.healthy(answer.Results, about.Release, count)
	if err != nil {
		return err
	}
	result, err := proofs.Attest(ctx, publisher, about, hosts)
	if err != nil {
		return code(onlyElsewhere(err, answer.Results, hosts))
	}
	return p.answer(result, "%s", attestedText(result))
}

// healthy returns the hosts that reported the release healthy. It returns an error if one reported a failure.
func (p *program) healthy(words []fleet.RunResult, release artifact.Release, count counted) ([]trust.Healthy, error) {
	var hosts []trust.Healthy
	var against []string
	for _, w := range words {
		switch {
		case w.OtherRoot && !count.otherRoot:
			p.explain("%s does not count: run %s used another root, where units and probes are not checked",
				trust.Printable(w.Host), trust.Printable(w.Run))
		case count.signed && !w.Signed:
			p.explain("%s does not count: its report is not signed, or its key is not registered (corpus host show %s)",
				trust.Printable(w.Host), trust.Printable(w.Host))
		case w.Healthy:
			hosts = append(hosts, trust.Healthy{Host: w.Host, Run: w.Run, At: w.At.UTC().Truncate(time.Second),
				OtherRoot: w.OtherRoot, Signed: w.Signed})
		case slices.Contains(count.except, w.Host):
			p.explain("%s does not count: %s", w.Host, w.Why)
		default:
			against = append(against, w.Host+" ("+trust.Printable(w.Why)+")")
		}
	}
	if len(against) > 0 {
		return nil, exit.WithCode(exit.Refused,
			diag.Proof.Hint(fmt.Errorf("%s failed on %s", release, strings.Join(against, ", ")),
				"correct it and publish another version; if the cause is the host, run this again with --except HOST"))
	}
	return hosts, nil
}

// onlyElsewhere adds to an error about too few hosts the hint that runs below another root did not count, if that
// is the reason.
func onlyElsewhere(err error, words []fleet.RunResult, counted []trust.Healthy) error {
	var unproven *proofs.Unproven
	var elsewhere []string
	for _, w := range words {
		if w.OtherRoot && !slices.ContainsFunc(counted, func(h trust.Healthy) bool { return h.Host == w.Host }) {
			elsewhere = append(elsewhere, trust.Printable(w.Host))
		}
	}
	if len(elsewhere) == 0 || !errors.As(err, &unproven) {
		return err
	}
	return diag.Proof.Hint(err,
		"%s ran it only below another root (--root), where units and probes are not checked: deploy it on the host itself, "+
			"or count such runs with --allow-other-root",
		strings.Join(elsewhere, ", "))
}

func attestedText(a proofs.Attested) string {
	text := fmt.Sprintf("attested: %s %s was healthy on %s of %s/%s, signed with %s, until %s", a.Project, a.Version,
		hostCount(a.Hosts), a.Project, a.Channel, shortKeys(a.Keys), a.Expires.Format("2006-01-02"))
	if a.Missing > 0 {
		text += fmt.Sprintf(
			"\n%s missing: let owners of other attestation keys run `corpus attest %s %s %s`",
			diag.Count(a.Missing, "signature"), a.Project, a.Channel, a.Version)
		return text
	}
	for _, ref := range a.For {
		text += fmt.Sprintf("\n%s requires it: corpus promote %s %s %s", ref, a.Project, a.Channel, ref.Channel)
	}
	return text
}

func hostCount(hosts []trust.Healthy) string {
	return diag.Count(len(hosts), "host")
}

func (p *program) renewProofs(ctx context.Context, ref artifact.Ref) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	renewed, err := proofs.Renew(ctx, publisher, ref)
	if err != nil {
		return code(err)
	}
	var lines []string
	for _, a := range renewed {
		lines = append(lines, fmt.Sprintf("signed again: %s %s was healthy on %s of %s, until %s", a.Project, a.Version,
			hostCount(a.Hosts), ref, a.Expires.Format("2006-01-02")))
	}
	return p.answer(renewed, "%s\nrun `corpus promote %s TO TO` for each channel TO that carries it",
		strings.Join(lines, "\n"), ref.Project)
}
