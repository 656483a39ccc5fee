package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) bootstrapCommand() *cobra.Command {
	var b packaging.Bootstrap
	sum := ""
	c := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print user data with which a new host deploys itself",
		Long: `bootstrap prints a script of at most 2 KiB for cloud-init. At the first boot it installs the agent, a
package or the static binary, after checking its digest, configures the root of trust, and deploys. With
--elb the host is registered with its load balancers after its first successful run.`,
		Example: `  corpus bootstrap --store s3://bucket/prefix --agent https://host/corpus-agent.deb --agent-digest ` +
			`corpus-agent.deb --elb`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if p.store == "" {
				return noStore()
			}
			if b.Agent == "" || sum == "" {
				return exit.WithCode(exit.Usage,
					diag.Usage.Hint(errors.New("a new host needs the agent: --agent or --agent-digest is missing"),
						"give --agent URL and --agent-digest FILE, a copy of the package at the URL"))
			}
			var err error
			b.Store = p.store
			if b.Root, err = p.rootDigest(); err != nil {
				return err
			}
			if b.Sum, err = digestOf(sum); err != nil {
				return err
			}
			text, err := b.UserData()
			if err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			return p.answer(map[string]string{"user_data": text}, "%s", strings.TrimSuffix(text, "\n"))
		},
	}
	flags := c.Flags()
	flags.StringVar(&b.Agent, "agent", "", "URL of the agent's .deb, .rpm or static binary")
	flags.StringVar(&sum, "agent-digest", "", "sha256:HEX of the agent, or a file with the same bytes")
	flags.StringVar(&b.Service, "service", "", "service of the host, if its name does not contain it")
	flags.StringVar(&b.Instance, "instance", "", "instance of the host, if its name does not contain it")
	flags.BoolVar(&b.Balance, "elb", false, "register with the load balancers after a successful first run")
	return c
}

// rootDigest returns the digest of the root of trust, which pins the store.
func (p *program) rootDigest() (string, error) {
	root := p.trustRoot
	if root == "" && p.keys == "" {
		return "", exit.WithCode(exit.Usage, diag.Root.Hint(errors.New("no root of trust was given"),
			"give --trust-root keys/root.json, or --keys DIR"))
	}
	if root == "" {
		root = filepath.Join(p.keys, roots.RootName)
	}
	hex, err := digestOf(root)
	return "sha256:" + hex, err
}

// digestOf parses sha256:HEX, or returns the digest of a file.
func digestOf(text string) (string, error) {
	if strings.HasPrefix(text, "sha256:") {
		d, err := artifact.ParseDigest(text)
		return d.Hex(), exit.WithCode(exit.Usage, err)
	}
	data, err := walk.ReadGiven(text)
	if err != nil {
		return "", exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("reading the file whose digest is needed: %w", err),
			"give a file, or sha256:HEX"))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
