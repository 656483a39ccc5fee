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
		k.rfc("enlarge ENDPOINT NODE GUEST SIZE", k.guestEnlarge(), 2, 3),
		k.rfc("trim ENDPOINT NODE GUEST SIZE", k.guestTrim(), 2, 3),
	}
}

// rfc gives a command the usage line of the RFC. pick has the indexes of the arguments to pass to the command; index 0
// is ENDPOINT.
func (k *clouds) rfc(use string, c *cobra.Command, pick ...int) *cobra.Command {
	run := c.RunE
	c.Long = c.Short + ". This is the RFC's name of a command of corpus node or corpus guest."
	name, _, _ := strings.Cut(use, " ")
	c.Example = "  corpus " + name + " prod" + strings.Repeat(" ...", strings.Count(use, " ")-1)
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
