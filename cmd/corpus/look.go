package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// reader follows a store from a root of trust, as a host does.
func (p *program) reader(ctx context.Context, trustRoot string) (client *trust.Client, done func(), err error) {
	s, err := p.openStore()
	if err != nil {
		return nil, nil, err
	}
	if trustRoot == "" && p.keys != "" {
		trustRoot = filepath.Join(p.keys, publish.RootName)
	}
	root, err := os.ReadFile(trustRoot)
	if err != nil {
		return nil, nil, exit.WithCode(exit.Usage, fmt.Errorf("reading the root of trust (--trust-root FILE, or --keys DIR): %w", err))
	}
	// A look keeps nothing: it sees the store as a host that was just started would.
	dir, err := os.MkdirTemp("", "corpus-look-")
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	if err := trust.Pin(dir, root); err != nil {
		done()
		return nil, nil, err
	}
	client, err = trust.Open(s, dir, nil)
	if err == nil {
		err = client.Refresh(ctx)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return client, done, nil
}

func (p *program) listCommand() *cobra.Command {
	root := ""
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List projects, channels and versions of a store",
		Example: `  corpus ls --store s3://bucket/prefix --trust-root root.json`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, done, err := p.reader(c.Context(), root)
			if err != nil {
				return err
			}
			defer done()
			list, err := client.List(c.Context())
			if err != nil {
				return err
			}
			if p.json {
				return p.JSON(list)
			}
			return p.printList(list)
		},
	}
	c.Flags().StringVar(&root, "trust-root", "", "root.json to trust; the one beside the keys by default")
	return c
}

func (p *program) printList(list []trust.Listing) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	for _, l := range list {
		fmt.Fprintf(w, "%s\tsigned until %s\n", l.Project, l.Expires.Format("2006-01-02"))
		for _, name := range slices.Sorted(maps.Keys(l.Channels)) {
			fmt.Fprintf(w, "  %s/%s\t%s\n", l.Project, name, l.Channels[name].Version)
		}
		for _, r := range l.Releases {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", r.Version, diag.Size(r.Length), r.Digest)
		}
	}
	return w.Flush()
}

func (p *program) verifyCommand() *cobra.Command {
	root := ""
	c := &cobra.Command{
		Use:     "verify",
		Short:   "Check everything in a store as a host would",
		Long:    `verify follows the signatures of a store and reads every artifact to its end.`,
		Example: `  corpus verify --store s3://bucket/prefix --trust-root root.json`,
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return p.verify(c.Context(), root) },
	}
	c.Flags().StringVar(&root, "trust-root", "", "root.json to trust; the one beside the keys by default")
	return c
}

func (p *program) verify(ctx context.Context, root string) error {
	client, done, err := p.reader(ctx, root)
	if err != nil {
		return err
	}
	defer done()
	list, err := client.List(ctx)
	if err != nil {
		return err
	}
	count, bytes := 0, int64(0)
	for _, l := range list {
		for _, r := range l.Releases {
			if err := client.Check(ctx, r, nil); err != nil {
				return err
			}
			p.explain("verified %s", r)
			count, bytes = count+1, bytes+r.Length
		}
	}
	return p.answer(map[string]any{"artifacts": count, "bytes": bytes}, "verified %d artifacts, %s", count, diag.Size(bytes))
}
