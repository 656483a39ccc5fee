package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) storeCommand() *cobra.Command {
	c := &cobra.Command{Use: "store", Short: "Set up a store"}
	threshold := 0
	init := &cobra.Command{
		Use:   "init",
		Short: "Set up an empty store",
		Long: `init signs the first root and the empty metadata of a store. The public root is also written to
root.json in the directory of keys; hosts are given it once, as a file or by its digest.

init refuses a store in which metadata lies, and keys that belong to another store. A store that lost
timestamp.json is repaired by ` + "`corpus refresh --rebuild`" + `.

Where the root keys are in several hands, the directory holds all public keys, --draft writes the first
root to be signed by their owners, and ` + "`corpus import`" + ` sets the store up.`,
		Example: `  corpus store init --store s3://bucket/prefix --keys keys
  corpus store init --store s3://bucket/prefix --keys keys --root-threshold 2 --draft root.draft`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			publisher, err := p.publisher(c.Context())
			if err != nil {
				return err
			}
			result, err := roots.Init(c.Context(), publisher, threshold)
			if err != nil {
				return code(err)
			}
			if p.drafted != nil {
				return p.answerDraft()
			}
			return p.answerInit(result)
		},
	}
	init.Flags().IntVar(&threshold, "root-threshold", 0, "root keys that must agree on a new root; 0 means more than half")
	p.draftFlag(init)
	c.AddCommand(init, p.upgradeCommand())
	return c
}

// answerInit tells that a store was set up.
func (p *program) answerInit(result roots.InitResult) error {
	if !result.Conditional {
		fmt.Fprintln(p.Err,
			"warning: this store ignores conditional writes, so two publishers at the same time can undo each other's work; "+
				"publish from one place only")
	}
	return p.answer(result, "set up %s\nroot of trust: %s\n               %s", p.store, result.RootFile, result.Digest)
}
