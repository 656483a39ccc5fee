package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/image"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
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
