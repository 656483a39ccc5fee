package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish/awskms"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) keysCommand() *cobra.Command {
	keys := &cobra.Command{
		Use:   "keys",
		Short: "Make, list and replace keys",
		Long: `Private keys are read from the files ROLE.key of --keys DIR and from the variables CORPUS_KEY_ROLE (for
the project my-app: CORPUS_KEY_MY_APP). Both hold one of:

  a PEM block, or base64 of one
  a PEM block encrypted with age: the passphrase is CORPUS_PASSPHRASE, or the first line of the file
    CORPUS_PASSPHRASE_FILE, or is read from the terminal; keys that are encrypted to a recipient are
    decrypted with the identities in CORPUS_AGE_IDENTITY_FILE
  awskms:ARN, a key that stays in AWS KMS`,
	}
	keys.AddCommand(p.keysNewCommand(), p.keysListCommand(), p.keysUseCommand(), p.keysRotateCommand())
	return keys
}

// sealing has the flags for the encryption of new keys.
type sealing struct {
	passphrase bool
	recipients []string
}

func (s *sealing) flags(c *cobra.Command) {
	c.Flags().BoolVar(&s.passphrase, "encrypt", false, "encrypt new keys with a passphrase")
	cli.RepeatedVar(c.Flags(), &s.recipients, "encrypt-to", "",
		"encrypt new keys to this age recipient (age1...); may be repeated")
	c.MarkFlagsMutuallyExclusive("encrypt", "encrypt-to")
}

func (p *program) keysNewCommand() *cobra.Command {
	rootKeys := 1
	var seal sealing
	c := &cobra.Command{
		Use:   "new [PROJECT...]",
		Short: "Make the keys of a store, or of projects",
		Long: `Without arguments, new makes the keys that set up and run a store: root, targets, snapshot and
timestamp. With arguments it makes the keys of these projects, for the teams that publish them; attestation
is the key that attests that releases are healthy (corpus attest).

Existing keys are kept. Private keys are the files *.key; keep root.key and targets.key off the machines
that publish every day.`,
		Example: `  corpus keys new --keys keys
  corpus keys new --keys keys --root-keys 3 --encrypt
  corpus keys new --keys team-keys myapp --encrypt-to age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p`,
		RunE: func(c *cobra.Command, args []string) error { return p.newKeys(c.Context(), args, rootKeys, seal) },
	}
	c.Flags().IntVar(&rootKeys, "root-keys", 1, "number of root keys, for a root that several people sign")
	seal.flags(c)
	return c
}

func (p *program) newKeys(ctx context.Context, projects []string, rootKeys int, seal sealing) error {
	ring, err := p.sealed(ctx, seal)
	if err != nil {
		return err
	}
	counts := map[string]int{}
	if len(projects) == 0 {
		projects = tuf.TopRoles()
		counts[tuf.RoleRoot] = rootKeys
	} else {
		for _, name := range projects {
			if err := trust.CheckDelegated(name); err != nil {
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
		return p.answer(map[string]any{"made": made}, "all keys already exist in %s", ring.Dir)
	}
	return p.answer(map[string]any{"made": made}, "made %s", strings.Join(made, ", "))
}

func (p *program) keysListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the keys in the directory without asking for a passphrase",
		Example: `  corpus keys ls --keys keys`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ring, err := p.directory(c.Context())
			if err != nil {
				return err
			}
			list, err := ring.List()
			if err != nil {
				return err
			}
			if p.json {
				return p.JSON(list)
			}
			w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
			for _, k := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.Role, trust.ShortKey(k.ID), k.Kind, k.File)
			}
			return w.Flush()
		},
	}
}

func (p *program) keysUseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "use ROLE awskms:ARN",
		Short: "Sign a role with a key in AWS KMS",
		Long: `use writes a reference to a key in AWS KMS as ROLE.key, and its public part as ROLE.pub. The key must be a
signing key of kind ECC_NIST_P256 or RSA. Signing needs the permissions kms:GetPublicKey and kms:Sign on it;
credentials and region are found as in other AWS programs.`,
		Example: `  corpus keys use root ` +
			`awskms:arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab --keys keys`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			ring, err := p.directory(c.Context())
			if err != nil {
				return err
			}
			if !strings.HasPrefix(args[1], awskms.Prefix) {
				return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("%q is not a reference to a key", args[1]),
					"write awskms:ARN"))
			}
			key, err := ring.Refer(args[0], args[1])
			if err != nil {
				return err
			}
			return p.answer(map[string]string{"role": args[0], "id": key.ID, "file": key.From}, "%s is signed with key %s (%s)",
				args[0], trust.ShortKey(key.ID), key.From)
		},
	}
}

func (p *program) keysRotateCommand() *cobra.Command {
	var seal sealing
	c := &cobra.Command{
		Use:   "rotate ROLE",
		Short: "Replace the keys of a role with new ones",
		Long: `rotate makes new keys for root, targets, snapshot, timestamp or a project, delegates to them, signs with
them, and removes the old ones, which are moved to the directory old. Hosts can follow at any time. Keys of
the role that are in other people's directories stay unchanged.

It needs the keys of root for the four roles, the targets key for a project, and those of snapshot and
timestamp. If one is missing nothing is written, and the error names the steps. New keys are protected as the
old ones are, with their passphrase or to their age recipients, unless --encrypt or --encrypt-to is given. The
successor of a key in KMS must be made there, and registered first with
` + "`corpus keys use ROLE awskms:ARN --keys DIR/next`" + `. A rotation that was interrupted is continued. If the root
is signed by several people, use ` + "`corpus root change --draft`" + ` instead.`,
		Example: `  corpus keys rotate timestamp --store s3://bucket/prefix --keys keys
  corpus keys rotate myapp --store s3://bucket/prefix --keys keys --encrypt`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return p.rotate(c.Context(), args[0], seal) },
	}
	seal.flags(c)
	return c
}

func (p *program) rotate(ctx context.Context, role string, seal sealing) error {
	ring, err := p.sealed(ctx, seal)
	if err != nil {
		return err
	}
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	next := ring
	next.Dir, next.Env = filepath.Join(ring.Dir, nextName), nil
	result, err := roots.Rotate(ctx, publisher, role, next)
	if meant := diag.DidYouMean(role, tuf.TopRoles()); err != nil && meant != "" {
		return exit.WithCode(exit.Usage, diag.Usage.Hint(err, "%s", meant))
	}
	if err != nil {
		return code(err)
	}
	return p.answer(result, "%s is signed with %s; the old key is kept in %s", role, shortKeys(result.New),
		filepath.Join(ring.Dir, "old"))
}

func shortKeys(ids []string) string {
	text := "key"
	if len(ids) > 1 {
		text += "s"
	}
	for _, id := range ids {
		text += " " + trust.ShortKey(id)
	}
	return text
}
