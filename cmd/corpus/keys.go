package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) keysCommand() *cobra.Command {
	keys := &cobra.Command{Use: "keys", Short: "Make keys"}
	keys.AddCommand(p.keysNewCommand())
	return keys
}

func (p *program) keysNewCommand() *cobra.Command {
	rootKeys := 1
	c := &cobra.Command{
		Use:   "new [PROJECT...]",
		Short: "Make the keys of a store, or of projects",
		Long: `Without arguments, new makes the keys that set up and run a store: root, targets, snapshot and
timestamp. With arguments it makes the keys of these projects, for the teams that publish them.

A key that is there already is kept. Private keys are the files *.key; keep root.key and targets.key
off the machines that publish every day.`,
		Example: `  corpus keys new --keys keys
  corpus keys new --keys keys --root-keys 3
  corpus keys new --keys team-keys myapp`,
		RunE: func(_ *cobra.Command, args []string) error { return p.newKeys(args, rootKeys) },
	}
	c.Flags().IntVar(&rootKeys, "root-keys", 1, "number of root keys, for a root that several people sign")
	return c
}

func (p *program) newKeys(projects []string, rootKeys int) error {
	ring, err := p.keyring()
	if err != nil {
		return err
	}
	counts := map[string]int{}
	if len(projects) == 0 {
		projects = metadata.TOP_LEVEL_ROLE_NAMES[:]
		counts[metadata.ROOT] = rootKeys
	} else {
		for _, name := range projects {
			if err := trust.CheckProject(name); err != nil {
				return exit.WithCode(exit.Usage, err)
			}
		}
	}
	made := []string{}
	for _, name := range projects {
		files, err := ring.New(name, max(1, counts[name]))
		if err != nil {
			return err
		}
		made = append(made, files...)
	}
	if len(made) == 0 {
		return p.answer(map[string]any{"made": made}, "all keys are there already in %s", ring.Dir)
	}
	return p.answer(map[string]any{"made": made}, "made %s", strings.Join(made, ", "))
}

func (p *program) storeCommand() *cobra.Command {
	c := &cobra.Command{Use: "store", Short: "Set up a store"}
	threshold := 0
	init := &cobra.Command{
		Use:   "init",
		Short: "Set up an empty store",
		Long: `init signs the first root and the empty metadata of a store. The public root is also written to
root.json in the directory of keys; hosts are told to trust it once, as a file or by its digest.`,
		Example: `  corpus store init --store s3://bucket/prefix --keys keys`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			publisher, err := p.publisher()
			if err != nil {
				return err
			}
			result, err := publisher.Init(c.Context(), threshold)
			if err != nil {
				return err
			}
			if !result.Conditional {
				fmt.Fprintln(p.Err, "warning: this store ignores conditional writes, so two publishers at the same time can undo each other's work; publish from one place only")
			}
			return p.answer(result, "set up %s\nroot of trust: %s\n               %s", p.store, result.RootFile, result.Digest)
		},
	}
	init.Flags().IntVar(&threshold, "root-threshold", 0, "root keys that must agree on a new root; 0 means more than half")
	c.AddCommand(init)
	return c
}

func (p *program) projectCommand() *cobra.Command {
	c := &cobra.Command{Use: "project", Short: "Say who may publish what"}
	key := ""
	add := &cobra.Command{
		Use:   "add NAME --key PUB",
		Short: "Let a key publish a project",
		Long: `add delegates a project to a key: whoever holds it can publish deploy/NAME/* and nothing else.
It takes the targets key.`,
		Example: `  corpus project add myapp --key myapp.pub --store s3://bucket/prefix --keys keys`,
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.addProject(c.Context(), args[0], key)
		},
	}
	add.Flags().StringVar(&key, "key", "", "public key file of the project")
	_ = add.MarkFlagRequired("key")
	c.AddCommand(add)
	return c
}
