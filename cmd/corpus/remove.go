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
		Short: "Remove a project from the store",
		Long: `remove signs that no key may sign the project any more. Its channels and versions no longer exist; its hosts
keep what they run and report that the store does not have it. remove needs the targets key.

The artifacts stay in the store, so that a project that was removed by mistake can be restored with corpus
project add and its key. With --artifacts they are removed permanently, also if the project was removed before:
a project that is added again after that starts without versions. That needs permission to list and delete
below deploy/ and metadata/pages/.`,
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
			text := fmt.Sprintf("removed the project %s from this store", args[0])
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
