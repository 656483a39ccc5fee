package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// backingUp is where and how the backups of a guest are made.
type backingUp struct {
	to          string
	paths, keep []string
	off         bool
}

func (k *clouds) guestBackup() *cobra.Command {
	b := backingUp{}
	c := &cobra.Command{
		Use:   "backup NAME",
		Short: "Set where and how a guest makes backups of itself",
		Long: `backup enters the repository, the paths and the retention of a guest's backups into the cloud. Its node hands them to the
guest, where the states restic of the base tree dump databases, save the paths each night and remove old backups. The password
of the repository and its credentials are in the pillar of the node or of the guest, never in the cloud (docs/cloud.md).`,
		Example: `  corpus guest backup db1 --repository s3:https://s3.example.com/backups/db1 --path /srv/data --keep daily=7 --cloud prod
  corpus guest backup db1 --off --cloud prod`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return k.editGuest(c.Context(), args[0], b.apply)
		},
	}
	f := c.Flags()
	f.StringVar(&b.to, "repository", "",
		"repository of restic: a directory, s3:https://HOST/BUCKET/PATH or rest:https://HOST/PATH")
	cli.RepeatedVar(f, &b.paths, "path", "", "path to save, in the place of those of the base tree; may be repeated")
	cli.RepeatedVar(f, &b.keep, "keep", "", "how many backups to keep, such as daily=7; may be repeated")
	f.BoolVar(&b.off, "off", false, "hand the guest no settings of backups any more; what it has stays")
	c.MarkFlagsMutuallyExclusive("repository", "off")
	return k.editFlags(c)
}

// apply enters the settings of backups that are given; the others stay.
func (b backingUp) apply(g *cloud.Guest) error {
	if b.off {
		g.BackupTo, g.BackupPaths, g.BackupKeep = "", nil, nil
		return nil
	}
	if b.to != "" {
		g.BackupTo = b.to
	}
	if g.BackupTo == "" {
		return diag.Cloud.Hint(errors.New("the guest has no repository of backups"), "give --repository")
	}
	if len(b.paths) > 0 {
		g.BackupPaths = b.paths
	}
	if len(b.keep) > 0 {
		g.BackupKeep = b.keep
	}
	return nil
}
