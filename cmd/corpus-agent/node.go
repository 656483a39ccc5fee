package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/guests"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/image"
	"github.com/corpus-agent/corpus-agent/agent/members"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) imageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "image PROJECT VERSION DIGEST",
		Short: "Fetch the image of guests of this node",
		Long: `image fetches a release, verifies it as a deploy does, and unpacks it to /var/lib/corpus-images/HEX, where HEX are the
digits of its digest. It prints that directory. If the image is there, its content is compared with the list that was
made when it was unpacked, and it is fetched again if they differ. The states of nodes call it (docs/cloud.md).`,
		Example: `  corpus-agent image image-bookworm 1.0 ` +
			`sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: cli.Args(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			digest, err := artifact.ParseDigest(args[2])
			err = errors.Join(artifact.CheckProject(args[0]), artifact.CheckVersion(args[1]), err)
			if err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			dir, err := p.pullImage(c.Context(), image.Wanted{Project: args[0], Version: args[1], Digest: digest})
			if err != nil {
				return err
			}
			return p.answer(map[string]any{"directory": dir}, dir)
		},
	}
}

func (p *program) pullImage(ctx context.Context, w image.Wanted) (string, error) {
	a, err := p.agent(map[string]string{})
	if err != nil {
		return "", err
	}
	if a.Config.Store == "" {
		return "", exit.WithCode(exit.Usage, diag.StoreURL.Hint(errors.New("no store is configured"),
			"set `store` in agent.yaml"))
	}
	if err := a.CheckAbove(filepath.Join(a.Layout.Images(), w.Digest.Hex())); err != nil {
		return "", err
	}
	var all []store.Store
	for _, url := range append([]string{a.Config.Store}, a.Config.Mirrors...) {
		s, err := a.OpenStore(url)
		if err != nil {
			return "", exit.WithCode(exit.Usage, err)
		}
		all = append(all, s)
	}
	return image.Pull(ctx, store.Failover(all[0], all[1:]...), a.Layout.Trust(), a.Layout.Images(), w)
}

func (p *program) membersCommand() *cobra.Command {
	all, start := false, false
	c := &cobra.Command{
		Use:   "members",
		Short: "Decide which members of classes of guests run on this node",
		Long: `members reads the leases of the classes of the cloud in the store (docs/cloud.md), measures the members that run on this
node, and renews, takes and releases leases. It records the result in /var/lib/corpus/members.json, from which the states of
the node start and stop members. If the store does not answer, nothing changes. A timer of nodes runs it each minute.`,
		Example: `  corpus-agent members --start`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := p.agent(map[string]string{})
			if err != nil {
				return err
			}
			memory, err := p.lookAtMembers(c.Context(), a, all)
			if err != nil {
				return err
			}
			if start {
				err = startRun(c.Context(), a, memory)
			}
			if err != nil {
				return err
			}
			return p.answer(map[string]any{"guests": memory.Guests, "where": memory.Where, "removed": memory.Removed},
				memory.Text())
		},
	}
	c.Flags().BoolVar(&all, "all", false, "read all classes, as a node needs that serves the DNS of the cloud")
	c.Flags().BoolVar(&start, "start", false, "start a run of the agent if other members are to run than do")
	return c
}

// startRun starts a run of the agent, unless the states of this node have applied what the memory says.
func startRun(ctx context.Context, a *agent.Agent, memory *members.Memory) error {
	applied, _, err := walk.Read(a.Layout.AppliedMembers())
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(applied)) != memory.Generation {
		_, err = site.Systemctl(ctx, 10*time.Second, "start", "--no-block", "corpus-agent.service")
	}
	return err
}

// lookAtMembers looks at the classes once, and saves the result.
func (p *program) lookAtMembers(ctx context.Context, a *agent.Agent, all bool) (*members.Memory, error) {
	node, err := nodeOf(a)
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if err := errors.Join(a.CheckAbove(a.Layout.State()), a.CheckAbove(a.Layout.GuestRecords())); err != nil {
		return nil, err
	}
	if node.Store, err = a.OpenStore(a.Config.Store); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if node.Key, err = hostkey.OpenFor(node.Host, a.Layout.HostKey(), func(string, ...any) {}); err != nil {
		return nil, err
	}
	if node.Memory, err = members.ReadMemory(a.Layout.Members()); err != nil {
		return nil, err
	}
	node.Now, node.All, node.Measure = time.Now(), all, members.Measure
	node.Disk = func(member string) (string, error) { return guests.DiskOf(a.Layout, member) }
	node.First = func(ctx context.Context, host string) (hostkey.Public, error) {
		return node.Memory.FirstOf(host, node.Now, func() (hostkey.Public, error) {
			return hostkey.FirstOf(ctx, node.Store, host)
		})
	}
	if err := node.Tick(ctx); err != nil {
		return nil, err
	}
	return node.Memory, node.Memory.Write(a.Layout.Members())
}

// nodeOf returns what this host is in its cloud.
func nodeOf(a *agent.Agent) (*members.Node, error) {
	book, err := a.ReadHostLedger()
	if err != nil {
		return nil, err
	}
	if book.As == nil || book.As.Service != cloud.Project {
		return nil, diag.Identity.Hint(errors.New("this host is not a node: it does not deploy the project cloud"),
			"docs/cloud.md describes how a host becomes one")
	}
	if a.Config.Store == "" {
		a.Config.Store = book.Host.Store
	}
	data, err := guests.Cloud(a.Layout)
	if err != nil {
		return nil, err
	}
	host, err := a.TreeHostname()
	return &members.Node{Host: host, Name: book.As.Node, Channel: book.As.Instance, Cloud: data}, err
}
