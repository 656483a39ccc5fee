package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// rfcCommands returns the commands for clouds with the names and arguments of the RFC; the first argument is an entry
// of clouds.yaml. They are hidden from help texts, which list corpus node and corpus guest.
func (p *program) rfcCommands() []*cobra.Command {
	k := &clouds{program: p}
	return []*cobra.Command{
		k.rfc("computenode_list ENDPOINT", k.nodeList()),
		k.rfc("computenode_infos ENDPOINT NODE", k.nodeInfo(), 1),
		k.rfc("computenode_switchmode ENDPOINT NODE MODE", k.nodeMode(), 1, 2),
		k.rfc("guest_delete ENDPOINT GUEST", k.guestDelete(), 1),
		k.rfc("enlarge ENDPOINT NODE GUEST SIZE", k.onNode(k.guestEnlarge()), 1, 2, 3),
		k.rfc("trim ENDPOINT NODE GUEST SIZE", k.onNode(k.guestTrim()), 1, 2, 3),
	}
}

// onNode gives a command for a guest the guest's node as its first argument, which has to be the right one.
func (k *clouds) onNode(c *cobra.Command) *cobra.Command {
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		k.on = args[0]
		return run(c, args[1:])
	}
	return c
}

// rfc gives a command the usage line of the RFC. pick has the indexes of the arguments to pass to the command; index 0
// is ENDPOINT.
func (k *clouds) rfc(use string, c *cobra.Command, pick ...int) *cobra.Command {
	run := c.RunE
	c.Long = c.Short + ". This is the RFC's name of a command of corpus node or corpus guest."
	name, _, _ := strings.Cut(use, " ")
	example := map[string]string{"ENDPOINT": "prod", "NODE": "n1", "MODE": "staging", "GUEST": "web1", "SIZE": "8GiB"}
	c.Example = "  corpus " + name
	for _, argument := range strings.Fields(use)[1:] {
		c.Example += " " + example[argument]
	}
	c.Use, c.Hidden, c.Args = use, true, cli.Args(cobra.ExactArgs(strings.Count(use, " ")))
	c.RunE = func(c *cobra.Command, args []string) error {
		k.named = args[0]
		if err := k.choose(); err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		var picked []string
		for _, i := range pick {
			picked = append(picked, args[i])
		}
		return run(c, picked)
	}
	return c
}
