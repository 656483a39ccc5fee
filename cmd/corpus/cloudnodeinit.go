package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging/remote"
)

func (k *clouds) nodeInit() *cobra.Command {
	s := settingUp{}
	return s.flags(&cobra.Command{
		Use:   "init NODE HOST",
		Short: "Make a bare Debian or Ubuntu host a node, over ssh",
		Long: `init sets up a host as a node that corpus node add has entered into the cloud. HOST is a destination of ssh, such as
root@192.0.2.1, and its account is root or may run sudo without a password. The ssh of this machine is run, so your keys, your
configuration and your known hosts apply.

It shows what the host lacks, asks, and then copies the agent, which the host installs if it has the right digest; sets the hostname
of the node, about which it asks by itself; writes /etc/corpus/agent.yaml with the store and "top: merge", and the file of
--environment to /etc/corpus/environment with mode 0600; enables the timer; and starts the first run with the root of trust.

If the connection is cut, run it again: it continues the copy, and does what is left. No file of the host is ever half written.
Settings that agent.yaml has are kept, and one with another value is an error. The exit code is 3 if the host cannot be set up,
and otherwise that of the first run.`,
		Example: `  corpus node init n1 root@192.0.2.1 --cloud prod
  corpus node init n1 admin@192.0.2.1 --environment n1.env --dry-run --cloud prod
  corpus node init n1 root@192.0.2.1 --agent corpus-agent_1.0_linux_arm64.deb --cloud prod`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error { return k.initialise(c.Context(), s, args[0], args[1]) },
	})
}

func (k *clouds) initialise(ctx context.Context, s settingUp, node, destination string) error {
	now, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := hasNode(now.data, node); err != nil {
		return err
	}
	w, err := k.wanted(ctx, s, now.data.NodeHostname(node, k.channel), []remote.Setting{{Name: "top", Value: "merge"}})
	if err != nil {
		return err
	}
	for other := range now.data.Nodes {
		if other != node {
			w.Others = append(w.Others, now.data.NodeHostname(other, k.channel))
		}
	}
	return k.setUp(ctx, s, destination, w)
}
