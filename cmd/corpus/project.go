package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) projectCommand() *cobra.Command {
	c := &cobra.Command{Use: "project", Short: "Set who may publish what"}
	c.AddCommand(p.projectAddCommand(), p.projectRevokeCommand(), p.projectRequireCommand(), p.projectRolloutCommand(),
		p.projectRemoveCommand())
	return c
}

func (p *program) projectAddCommand() *cobra.Command {
	var files []string
	threshold, isNew := 0, false
	c := &cobra.Command{
		Use:   "add NAME --key PUB",
		Short: "Let a key publish a project",
		Long: `add delegates a project to a key: its owner can publish deploy/NAME/* and nothing else. The keys are added to
those that the project has. --threshold sets how many of them must sign every release. It needs the targets key.

A removed project (corpus project remove) is restored as it was if it is added with the key that signed it. With
another key it needs --new, and starts without its former versions; so does one that was removed with its
artifacts, with any key.

NAME may be attestation: its keys do not sign a project but proofs that releases were healthy (corpus attest).`,
		Example: `  corpus project add myapp --key myapp.pub --store s3://bucket/prefix --keys keys
  corpus project add myapp --key ann.pub --key bob.pub --threshold 2 --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.addProject(c.Context(), args[0], files, threshold, isNew)
		},
	}
	cli.RepeatedVar(c.Flags(), &files, "key", "", "public key file of the project; may be repeated")
	c.Flags().IntVar(&threshold, "threshold", 0, "number of the project's keys that must sign; 0 keeps the present number")
	c.Flags().BoolVar(&isNew, "new", false,
		"start a removed project without its former versions, which other keys signed")
	c.MarkFlagsOneRequired("key", "threshold")
	p.draftFlag(c)
	p.atOnceFlag(c)
	return c
}

func (p *program) addProject(ctx context.Context, name string, files []string, threshold int, isNew bool) error {
	keys, err := publicKeys(files)
	if err != nil {
		return err
	}
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	publisher.New = isNew
	if err := projects.Add(ctx, publisher, name, threshold, keys...); err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	ids := []string{}
	for _, k := range keys {
		id, err := k.ID()
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	may := "publish " + name
	if name == trust.AttestationRole {
		may = "attest that releases were healthy"
	}
	text := shortKeys(ids) + " may " + may
	if len(ids) == 0 {
		text = fmt.Sprintf("%d of its keys must sign %s", threshold, name)
	}
	return p.answer(map[string]any{"project": name, "keys": ids}, "%s", text)
}

func publicKeys(files []string) ([]*tuf.Key, error) {
	var keys []*tuf.Key
	for _, file := range files {
		key, err := keyring.ReadPublic(file)
		if err != nil {
			return nil, exit.WithCode(exit.Usage, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (p *program) projectRevokeCommand() *cobra.Command {
	var keys []string
	c := &cobra.Command{
		Use:   "revoke NAME --key PUB|ID",
		Short: "Remove a key from a project",
		Long: `revoke signs that a key may no longer sign a project. Hosts refuse what only this key has signed, including
metadata that they have stored.

If another key of the project is available, the project's metadata is signed again in the same step. Check it:
the owner of the revoked key may have published with it. If no other key is available, export the project, check
it, sign it and import it first; or revoke the key with --at-once and do that afterwards: until then hosts keep
what they run. revoke needs the targets key.`,
		Example: `  corpus project revoke myapp --key lost.pub --store s3://bucket/prefix --keys keys
  corpus project revoke myapp --key 3f2a9c1b --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return p.revoke(c.Context(), args[0], keys) },
	}
	cli.RepeatedVar(c.Flags(), &keys, "key", "", "public key file, or the beginning of a key's ID; may be repeated")
	_ = c.MarkFlagRequired("key")
	p.draftFlag(c)
	p.atOnceFlag(c)
	return c
}

func (p *program) revoke(ctx context.Context, name string, keys []string) error {
	ids, err := keyIDs(keys)
	if err != nil {
		return err
	}
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	result, err := projects.Revoke(ctx, publisher, name, ids...)
	if err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	text := fmt.Sprintf("%s may no longer sign %s", shortKeys(result.Keys), name)
	if !result.Signed {
		text += fmt.Sprintf("\nhosts refuse %s until another of its keys signs its metadata:\n"+
			"  corpus export %s -o %s.draft; corpus sign %s.draft; corpus import %s.draft", name, name, name, name, name)
	}
	if len(result.Refused) > 0 {
		text += fmt.Sprintf("\nhosts refuse the releases of these channels until they are attested and promoted again: %s",
			strings.Join(result.Refused, ", "))
	}
	return p.answer(result, "%s", text)
}

// keyIDs returns IDs of keys, which may be given as public key files.
func keyIDs(keys []string) ([]string, error) {
	var ids []string
	for _, k := range keys {
		if is, err := walk.Exists(k); err != nil {
			return nil, exit.WithCode(exit.Usage, err)
		} else if is {
			public, err := keyring.ReadPublic(k)
			if err != nil {
				return nil, exit.WithCode(exit.Usage, err)
			}
			if k, err = public.ID(); err != nil {
				return nil, err
			}
		}
		ids = append(ids, k)
	}
	return ids, nil
}
