package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/drafts"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// draftFlag adds --draft, with which a command writes a draft to a file instead of signing.
func (p *program) draftFlag(c *cobra.Command) {
	c.Flags().StringVar(&p.draft, "draft", "",
		"leave the store unchanged and write a draft to this file, for several people to sign")
}

// atOnceFlag adds --at-once, with which a command removes keys before other keys have signed.
func (p *program) atOnceFlag(c *cobra.Command) {
	c.Flags().BoolVar(&p.atOnce, "at-once", false,
		"remove the keys now, although hosts then refuse what other keys have not signed yet and keep what they run")
}

// answerDraft prints a summary of the draft that was written.
func (p *program) answerDraft() error { return p.tellDraft(p.draft, p.drafted) }

func (p *program) tellDraft(file string, d *publish.Draft) error {
	s, err := d.Summary()
	if err != nil {
		return err
	}
	if p.json {
		return p.JSON(struct {
			publish.Summary
			File string `json:"file"`
		}{s, file})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %d, until %s, content %s\n", file, s.Role, s.Version, s.Expires.Format("2006-01-02"),
		s.Content)
	for _, line := range s.Says {
		b.WriteString("  " + trust.Printable(line) + "\n")
	}
	for _, may := range s.Needs {
		fmt.Fprintf(&b, "%s requires %d of %s\n", trust.Printable(may.By), may.Threshold, shortKeys(may.Keys))
	}
	signed := "no key yet"
	if len(s.SignedBy) > 0 {
		signed = shortKeys(s.SignedBy)
	}
	fmt.Fprintf(&b, "signed by %s", signed)
	if s.Missing > 0 {
		fmt.Fprintf(&b, "; %d more needed: corpus sign %s", s.Missing, file)
	} else {
		fmt.Fprintf(&b, "; to put it into force: corpus import %s", file)
	}
	_, err = fmt.Fprintln(p.Out, b.String())
	return err
}

func (p *program) exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export ROLE -o FILE",
		Short: "Write root, targets or a project to a file for signing",
		Long: `export writes the next version of a role, changed only in its expiry, as a draft: a file that the owners
of its keys sign without the store (` + "`corpus sign`" + `) and that ` + "`corpus import`" + ` commits. Commands that
change something write such a draft with --draft.

A project whose key was revoked is exported as it is. Read it before you sign it.`,
		Example: `  corpus export root -o root.draft --store s3://bucket/prefix --trust-root keys/root.json
  corpus export myapp -o myapp.draft --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return p.export(c.Context(), args[0]) },
	}
	c.Flags().StringVarP(&p.draft, "output", "o", "", "file to write")
	_ = c.MarkFlagRequired("output")
	return c
}

func (p *program) export(ctx context.Context, role string) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	d, verified, err := drafts.Export(ctx, publisher, role)
	if err != nil {
		return code(err)
	}
	if err := d.Write(p.draft); err != nil {
		return err
	}
	if !verified {
		fmt.Fprintf(p.Err, "warning: no key that may sign %s has signed this: read it before you sign it\n", role)
	}
	return p.tellDraft(p.draft, d)
}

func (p *program) signCommand() *cobra.Command {
	var files []string
	show := false
	c := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign a draft; no store is needed",
		Long: `sign shows what a draft says and adds the signatures of the keys given by --key, or of the keys of its
role in --keys DIR and the environment. The digest shows whether two people sign the same content.`,
		Example: `  corpus sign root.draft --show
  corpus sign root.draft --key bob/root.key
  corpus sign root.draft --key awskms:arn:aws:kms:us-east-1:111122223333:alias/root
  corpus sign myapp.draft --keys team-keys`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := publish.ReadDraft(args[0])
			if err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			if !show {
				if err := p.sign(c.Context(), d, files); err != nil {
					return err
				}
				if err := d.Write(args[0]); err != nil {
					return err
				}
			}
			return p.tellDraft(args[0], d)
		},
	}
	cli.RepeatedVar(c.Flags(), &files, "key", "", "private key file, or awskms:ARN; may be repeated")
	c.Flags().BoolVar(&show, "show", false, "show the draft without signing it")
	return c
}

func (p *program) sign(ctx context.Context, d *publish.Draft, files []string) error {
	ring, err := p.ring(ctx)
	if err != nil {
		return err
	}
	var keys []keyring.Key
	for _, file := range files {
		found, err := ring.File(file)
		if err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		keys = append(keys, found...)
	}
	if len(files) == 0 {
		if keys, err = ring.Keys(d.Role); err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		if len(keys) == 0 {
			return exit.WithCode(exit.Usage, ring.Missing(d.Role))
		}
	}
	return exit.WithCode(exit.Usage, d.Sign(keys))
}

func (p *program) importCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Commit a draft that enough people have signed",
		Long: `import verifies the signatures of a draft against the present state of the store and commits it. It needs
the keys of snapshot and timestamp, and for a store's first root that of targets. A draft is refused if
another version was committed after it was made: make it again.`,
		Example: `  corpus import root.draft --store s3://bucket/prefix --keys online-keys`,
		Args:    cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := publish.ReadDraft(args[0])
			if err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			return p.importDraft(c.Context(), d)
		},
	}
	p.atOnceFlag(c)
	return c
}

func (p *program) importDraft(ctx context.Context, d *publish.Draft) error {
	open := p.pinned
	if d.From == 0 && d.Role == "root" {
		open = p.publisher // the store does not have a root yet
	}
	publisher, err := open(ctx)
	if err != nil {
		return err
	}
	result, err := drafts.Import(ctx, publisher, d)
	switch {
	case err != nil:
		return code(err)
	case result.Store != nil:
		return p.answerInit(*result.Store)
	case result.Root != nil:
		return p.answer(result, "%s", rootText(*result.Root))
	}
	if len(result.WithoutChunks) > 0 {
		fmt.Fprintf(p.Err,
			"warning: chunks of %s %s were removed before it was signed, so hosts fetch all of it\n"+
				"hint: publish the same files again, and give `corpus gc` longer periods (--drafts, --grace)\n",
			result.Role, strings.Join(result.WithoutChunks, ", "))
	}
	return p.answer(result, "%s %d is in force", result.Role, result.Version)
}
