package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) hostShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show the keys of a host, and how it is",
		Long: `show shows the keys that the store has for a host, and how the host was after its newest run: what it has, which release
failed there and why. It takes the right to list the store.`,
		Example: `  corpus host show myapp-production-3 --store s3://bucket/prefix
  corpus host show myapp-production-3 --json --store s3://bucket/prefix`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := p.openStore()
			if err != nil {
				return err
			}
			h, err := p.hostInStore(c.Context(), s, args[0])
			if err != nil {
				return err
			}
			if err := h.read(c.Context(), s); err != nil {
				return err
			}
			if p.json {
				return p.JSON(h)
			}
			err = errors.Join(p.printHosts([]knownHost{h}, false), p.printCurrent(h))
			if err != nil || len(h.Conflicts) == 0 {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "if %s was replaced and the first key is gone with the old machine: corpus host "+
				"forget %s\n",
				h.Host, h.Host)
			return err
		},
	}
}

// read reads the record of a host.
func (h *knownHost) read(ctx context.Context, s store.Store) error {
	known := hostkey.Registry{h.Host: append([]hostkey.Registered{{Key: h.Key, Since: h.Since, Omitted: h.Omitted}},
		h.Conflicts...)}
	keys := func(context.Context, store.Store) (hostkey.Registry, error) { return known, nil }
	v, err := fleet.Look(ctx, fleet.Query{Store: s, Now: time.Now(), SilentAfter: silentAfter, Keys: keys, Known: known,
		Host: h.Host})
	if err != nil {
		return err
	}
	h.NotRecords = v.Flooded[h.Host]
	switch {
	case len(v.Hosts) == 0 && len(v.Ignored) > 0:
		h.Ignored = v.Ignored[0].Why
		return nil
	case len(v.Hosts) == 0:
		return nil
	}
	detail, err := hostrecord.Read(ctx, s, known, v.Hosts[0].Listed)
	h.Current = &currentHost{v.Hosts[0], detail}
	return err
}

func (p *program) printCurrent(of knownHost) error {
	h := of.Current
	if of.NotRecords > 0 {
		fmt.Fprintf(p.Out, "%s below fleet/ that are not records of it: find out what writes them, and remove them\n",
			diag.Count(of.NotRecords, "object"))
	}
	if of.Ignored != "" {
		_, err := fmt.Fprintf(p.Out, "its record does not count: %s\n", of.Ignored)
		return err
	}
	if h == nil {
		_, err := fmt.Fprintln(p.Out, "no record: it has not reported since agents write one")
		return err
	}
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, trust.Printable(text))
		}
	}
	line("state", stateText(h.Host))
	run := h.ID + ", " + h.Outcome + ", exit code " + strconv.Itoa(h.Exit) + ", reported " + diag.Stamp(h.Seen)
	if h.Unbegun {
		run = "could not begin, or not write to its disk, at " + diag.Stamp(h.Seen)
	}
	line("run", run)
	line("has", placesText(h.Project, h.Base, h.Service))
	line("wanted", placesText(h.Project, h.WantedBase, h.Wanted))
	line("agent", h.Agent)
	// The host chose these texts, so they are quoted, and there is no hint of the program with them.
	line("it says", quotedWhole(h.Error))
	line("it advises", quotedWhole(h.Hint))
	return w.Flush()
}

// quotedWhole returns a text that a host chose, with all of its lines in one; "" for none.
func quotedWhole(text string) string {
	if text == "" {
		return ""
	}
	return fleet.Quoted(text)
}

// stateText returns the state of a host followed by its other conditions, such as "silent".
func stateText(h fleet.Host) string {
	text := string(h.State)
	for _, more := range []struct {
		is   bool
		what string
	}{
		{h.Held && h.State != fleet.Held, "held"}, {h.Silent, "silent"}, {h.OtherRoot, "below another root (--root)"},
		{h.Expiring, "signatures of the store expire soon"},
	} {
		if more.is {
			text += ", " + more.what
		}
	}
	return text
}

func placesText(project string, base, service *hostrecord.Place) string {
	var all []string
	for _, place := range []*hostrecord.Place{base, service} {
		if place == nil {
			continue
		}
		name := project
		if place == base {
			name = artifact.Base
		}
		text := name + " " + cmp.Or(place.Version, "nothing")
		if place.Channel != "" {
			text += " of " + place.Channel
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// hostInStore returns the keys of a host in the store. It returns an error if there are none.
func (p *program) hostInStore(ctx context.Context, s store.Store, name string) (knownHost, error) {
	keys, err := hostkey.Of(ctx, s, name)
	if err != nil {
		return knownHost{}, err
	}
	if len(keys) > 1 {
		client, done := p.readerClient()
		defer done()
		known, err := p.hostKeys(client)(ctx, s)
		if err != nil {
			return knownHost{}, err
		}
		keys = known[name]
	}
	if len(keys) == 0 {
		return knownHost{}, exit.WithCode(exit.Usage, diag.Host.Hint(
			fmt.Errorf("the store has no key of a host %s", trust.Printable(name)),
			"`corpus host ls` lists those that it knows; a host registers its key with its first report (reports.upload)"))
	}
	return newKnownHost(name, keys), nil
}
