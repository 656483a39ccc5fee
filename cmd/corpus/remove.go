package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) projectRemoveCommand() *cobra.Command {
	artifacts := false
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a project out of the store",
		Long: `remove says that nobody may sign a project any more: its channels and versions are gone, and hosts of it keep what they run
and say that the store does not have it. It takes the targets key.

The artifacts stay in the store, so that a project that was removed by mistake comes back with corpus project add and its key.
With --artifacts they are removed for good, also later, by the same command: a project that is added again after that has none of
the versions it had. That needs the right to list and delete below
deploy/ and metadata/pages/.`,
		Example: `  corpus project remove myap --store s3://bucket/prefix --keys keys
  corpus project remove myap --artifacts --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			result, err := projects.Remove(c.Context(), publisher, args[0], artifacts)
			if err != nil {
				return code(err)
			}
			if p.drafted != nil {
				return p.answerDraft()
			}
			text := fmt.Sprintf("%s is no project of this store any more", args[0])
			if artifacts {
				text += fmt.Sprintf("; removed %s, %s", diag.Count(result.Objects, "object"), diag.Size(result.Bytes))
			}
			return p.answer(result, "%s", text)
		},
	}
	c.Flags().BoolVar(&artifacts, "artifacts", false, "remove its artifacts too")
	p.draftFlag(c)
	return c
}
