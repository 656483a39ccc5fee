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
		Long: `init signs the first root and the empty metadata of a store. It also writes the public root to root.json in
the directory of keys; a new host needs this file or its digest.

init refuses a store that has metadata, and keys that belong to another store. A store that lost
timestamp.json is repaired by ` + "`corpus refresh --rebuild`" + `.

If the root keys belong to several people, the directory must have all public keys. --draft then writes the
first root, its owners sign it, and ` + "`corpus import`" + ` sets the store up.`,
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
	init.Flags().IntVar(&threshold, "root-threshold", 0, "number of root keys that must sign a new root; 0 means more "+
		"than half")
	p.draftFlag(init)
	c.AddCommand(init, p.upgradeCommand())
	return c
}

// answerInit prints the result of `corpus store init`.
func (p *program) answerInit(result roots.InitResult) error {
	if !result.Conditional {
		fmt.Fprintln(p.Err,
			"warning: this store ignores conditional writes, so two publishers at the same time can undo each other's work; "+
				"publish from one place only")
	}
	return p.answer(result, "set up %s\nroot of trust: %s\n               %s", p.store, result.RootFile, result.Digest)
}
