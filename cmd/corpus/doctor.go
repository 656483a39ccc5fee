package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/doctor"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish/awskms"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with a store and with the keys of this machine",
		Long: `doctor makes all checks at once and prints one line for each, with a cure below what is wrong: the private keys and who
may read them, the root of trust, and the store: address, credentials, clock, signatures and their expiry, and the rights
to read and list, and with --keys to write.

It changes nothing: rights to write are examined by writes on a condition that is never met.

Exit codes: 0 nothing is wrong or there are only warnings, 2 the URL of the store is wrong, 3 a check failed.`,
		Example: `  corpus doctor --store s3://bucket/prefix --keys keys
  corpus doctor --store s3://bucket/prefix --trust-root root.json --json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := p.examine(c.Context())
			if err != nil {
				return err
			}
			return p.Findings(found, p.json)
		},
	}
}

// examine makes all checks. A person waits, so a store that does not answer becomes a finding after a few seconds.
func (p *program) examine(ctx context.Context) (*doctor.Findings, error) {
	if p.store == "" {
		return nil, noStore()
	}
	const patience = 5 * time.Second
	opened, err := stores.OpenAs(p.store,
		stores.Options{Retry: store.RetryPolicy{Total: patience, Slow: p.SlowStore(p.store)}}, awskms.Account)
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	found, s := &doctor.Findings{}, doctor.Store{Store: opened, URL: redact.URLs(p.store), Now: time.Now}
	p.examineKeys(found)
	if !found.AskStore(ctx, s) {
		return found, ctx.Err()
	}
	found.AskList(ctx, s, "metadata/", "publishers")
	if p.keys == "" {
		found.Skip("write", "without --keys nothing is to be written")
	} else {
		found.AskWrite(ctx, s, "promoter", false, "metadata/")
		found.AskPublish(ctx, s)
	}
	p.examineTrust(ctx, found, s)
	return found, ctx.Err()
}

// examineTrust follows the store from the root of trust of this machine.
func (p *program) examineTrust(ctx context.Context, found *doctor.Findings, s doctor.Store) {
	root, err := p.rootOfTrust(ctx, s)
	if err != nil {
		found.Error("trust", diag.Root, err, "give --trust-root FILE, or --keys DIR with root.json in it")
		return
	}
	found.OK("trust", "a root of trust is there")
	if err := p.checkMemory(); err != nil {
		found.Error("trust", diag.Root, err, "see docs/trust.md")
	}
	_, done := found.AskTrust(ctx, s, root, p.memoryOf(root))
	done()
}
