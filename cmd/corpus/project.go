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
	c := &cobra.Command{Use: "project", Short: "Say who may publish what"}
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
		Long: `add delegates a project to a key: whoever holds it can publish deploy/NAME/* and nothing else. Keys are
added to those that the project has. With --threshold so many of them have to sign every release.
It takes the targets key.

A project that was removed (corpus project remove) comes back as it was with the key that signed it. With another key it needs
--new, and begins without the versions that it had; so does one that was removed with its artifacts, with any key.

NAME may be attestation: its keys sign no project, but that releases were healthy (corpus attest).`,
		Example: `  corpus project add myapp --key myapp.pub --store s3://bucket/prefix --keys keys
  corpus project add myapp --key ann.pub --key bob.pub --threshold 2 --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.addProject(c.Context(), args[0], files, threshold, isNew)
		},
	}
	cli.RepeatedVar(c.Flags(), &files, "key", "", "public key file of the project; may be repeated")
	c.Flags().IntVar(&threshold, "threshold", 0, "how many of the project's keys have to sign; 0 leaves it as it is")
	c.Flags().BoolVar(&isNew, "new", false,
		"begin a project that was removed without the versions that it had, which other keys have signed")
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
		text = fmt.Sprintf("%d of its keys have to sign %s", threshold, name)
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
		Short: "Take a key away from a project",
		Long: `revoke says that a key may no longer sign a project. Hosts refuse what only this key has signed, also
what they have kept.

What the project says is signed again in the same step where one of its other keys is at hand. Look at
it then: whoever had the key may have published with it. Where none is at hand, export the project,
look at it, sign it and import it first; or take the key away with --at-once, and do that afterwards:
until then hosts stay on what they run. It takes the targets key.`,
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
		text += fmt.Sprintf("\nhosts refuse %s until one of its other keys signs what it says:\n"+
			"  corpus export %s -o %s.draft; corpus sign %s.draft; corpus import %s.draft", name, name, name, name, name)
	}
	if len(result.Refused) > 0 {
		text += fmt.Sprintf("\nhosts refuse what these name until it is attested and promoted anew: %s",
			strings.Join(result.Refused, ", "))
	}
	return p.answer(result, "%s", text)
}

// keyIDs reads IDs of keys, of which some are given as public key files.
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
