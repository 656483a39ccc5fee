package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// reportsCount is the age after which a host without reports is no longer counted among the hosts of a store.
const reportsCount = 90 * 24 * time.Hour

// mostNamed is the number of hosts that an error lists.
const mostNamed = 20

func (p *program) upgradeCommand() *cobra.Command {
	force := false
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Stop writing the metadata format of earlier versions of corpus",
		Long: `upgrade ends the list of all versions of a project in one file, which publish writes for earlier versions of
corpus and corpus-agent beside the present format. It needs the targets key and cannot be undone. Run it when
every host has this agent, and everyone who publishes has this corpus.

It reads the newest report of each host in the store. If the agents of some hosts do not report that they read
the new format, upgrade lists these hosts, writes nothing, and ends with exit code 4; --force upgrades the store
nevertheless. Hosts that upload no reports (reports.upload in agent.yaml), and hosts that have not reported for
90 days, are not considered.

After the next publish of a project, earlier agents still follow its channels, but see only versions that a
channel names: for other releases corpus-agent verify compares with what was recorded when they were unpacked.
Earlier versions of corpus also see only these versions, and must not publish any more.`,
		Example: `  corpus store upgrade --store s3://bucket/prefix --keys keys
  corpus store upgrade --force --store s3://bucket/prefix --keys keys
  corpus store upgrade --store s3://bucket/prefix --keys keys --draft targets.draft`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return p.upgrade(c.Context(), force) },
	}
	c.Flags().BoolVar(&force, "force", false,
		"upgrade although hosts have agents that do not read the new format, or reports cannot be read")
	p.draftFlag(c)
	return c
}

func (p *program) upgrade(ctx context.Context, force bool) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	if !force {
		if err := p.readyToUpgrade(ctx, publisher.Store, time.Now().Add(-reportsCount)); err != nil {
			return err
		}
	}
	if _, err := projects.Upgrade(ctx, publisher); err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	return p.answer(map[string]any{"upgraded": true},
		"the lists of all versions in one file end with the next publish of each project")
}

// readyToUpgrade returns an error if the newest report of a host comes from an agent that does not report that it
// reads the new format.
func (p *program) readyToUpgrade(ctx context.Context, s store.Store, since time.Time) error {
	agents, err := fleet.Agents(ctx, s, since)
	if err != nil {
		return diag.Evidence.Hint(fmt.Errorf("it is not known whether every host's agent reads the new format: %w", err),
			"use credentials that may list and read below reports/, or give --force if you know that every host has this agent")
	}
	old := slices.DeleteFunc(slices.Clone(agents), func(a fleet.Agent) bool { return a.Form >= trust.NewestForm })
	switch {
	case len(old) > 0:
		return exit.WithCode(exit.Refused, diag.Evidence.Hint(
			fmt.Errorf("the agents of %d of %d hosts do not report that they read the new format: %s; nothing was written",
				len(old), len(agents), namedHosts(old)),
			"install this version of corpus-agent there, wait for its next run, and run this again; --force upgrades the "+
				"store although these hosts then see only versions that a channel names"))
	case len(agents) == 0:
		fmt.Fprintln(p.Err, "warning: no host has uploaded a report, so the versions of their agents are not known")
	default:
		p.explain("of %s that upload reports all have agents that read the new format", diag.Count(len(agents), "host"))
	}
	return nil
}

// namedHosts returns a text that lists hosts with the versions of their agents.
func namedHosts(agents []fleet.Agent) string {
	var names []string
	for _, a := range agents {
		version := "an earlier version"
		if a.Version != "" {
			version = trust.Printable(a.Version)
		}
		names = append(names, fmt.Sprintf("%s (%s)", trust.Printable(a.Host), version))
	}
	return named(names, mostNamed)
}
