package main

import (
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) hostCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Show and remove the keys with which hosts sign their reports",
		Long: `A host that uploads reports (reports.upload) makes a key and registers the public half in the store. The first
key that is registered for a name belongs to the host: only reports that are signed with it count. Another key
for the same name is a conflict, and is ignored until the first one is removed (corpus host forget).`,
		Example: `  corpus host ls --store s3://bucket/prefix
  corpus host forget myapp-production-3 --store s3://bucket/prefix`,
	}
	c.AddCommand(p.hostListCommand(), p.hostShowCommand(), p.hostForgetCommand())
	return c
}

// knownHost is a host in the store's registry.
type knownHost struct {
	Host      string               `json:"host"`
	Key       hostkey.Public       `json:"key"`
	Since     time.Time            `json:"since"`
	Conflicts []hostkey.Registered `json:"conflicts,omitempty"`
	// Omitted is the number of conflicts that Conflicts does not have, since there are very many.
	Omitted int `json:"conflicts_omitted,omitempty"`
	// Current is the state of the host after its newest run; nil if the store has no valid record of the host.
	Current *currentHost `json:"current,omitempty"`
	Ignored string       `json:"ignored,omitempty"` // why its record does not count
	// NotRecords is the number of objects below its name that are not records, if there are very many.
	NotRecords int `json:"not_records,omitempty"`
}

// currentHost is the complete record of a host.
type currentHost struct {
	fleet.Host
	hostrecord.Detail
}

func newKnownHost(name string, keys []hostkey.Registered) knownHost {
	h := knownHost{Host: name, Key: keys[0].Key, Since: keys[0].Since}
	for i, k := range keys {
		h.Omitted += k.Omitted
		if k.Omitted = 0; i > 0 {
			h.Conflicts = append(h.Conflicts, k)
		}
	}
	return h
}

func (p *program) hostListCommand() *cobra.Command {
	conflicts := false
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the hosts that registered a key",
		Long: `ls lists the hosts with a registered key, and below each host the other keys that were registered for its name.
It needs permission to list the store.`,
		Example: `  corpus host ls --store s3://bucket/prefix
  corpus host ls --conflicts --store s3://bucket/prefix
  corpus host ls --json --store s3://bucket/prefix`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := p.openStore()
			if err != nil {
				return err
			}
			client, done := p.readerClient()
			defer done()
			known, err := p.hostKeys(client)(c.Context(), s)
			if err != nil {
				return err
			}
			hosts := []knownHost{}
			for _, name := range slices.Sorted(maps.Keys(known)) {
				if h := newKnownHost(name, known[name]); !conflicts || len(h.Conflicts) > 0 {
					hosts = append(hosts, h)
				}
			}
			if p.json {
				return p.JSON(hosts)
			}
			return p.printHosts(hosts, conflicts)
		},
	}
	c.Flags().BoolVar(&conflicts, "conflicts", false, "list only hosts whose name has several keys")
	return c
}

// widestName is the longest name that shares its line with a key, so that a name does not pad the lines of all others.
const widestName = 64

func (p *program) printHosts(hosts []knownHost, conflicts bool) error {
	if len(hosts) == 0 {
		text := "no host has registered a key; hosts register one when they upload reports (reports.upload: true)"
		if conflicts {
			text = "no name has several keys"
		}
		_, err := fmt.Fprintln(p.Out, text)
		return err
	}
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	for _, h := range hosts {
		after := ""
		if len(h.Host) > widestName {
			after = "\n"
		}
		fmt.Fprintf(w, "%s%s\t%s\tsince %s\n", h.Host, after, h.Key, diag.Stamp(h.Since))
		for _, other := range h.Conflicts {
			fmt.Fprintf(w, "  conflict\t%s\tsince %s\n", other.Key, diag.Stamp(other.Since))
		}
		if h.Omitted > 0 {
			fmt.Fprintf(w, "  and %s below hosts/%s/ in the store\n", diag.Count(h.Omitted, "other key"), h.Host)
		}
	}
	return w.Flush()
}
