package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	// Current is how the host was after its newest run; nil where the store has no record of it that counts.
	Current *currentHost `json:"current,omitempty"`
}

// currentHost is the record of a host with all that it says.
type currentHost struct {
	fleet.Host
	hostrecord.Detail
}

func newKnownHost(name string, keys []hostkey.Registered) knownHost {
	return knownHost{Host: name, Key: keys[0].Key, Since: keys[0].Since, Conflicts: keys[1:]}
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
			return p.printHosts(hosts)
		},
	}
	c.Flags().BoolVar(&conflicts, "conflicts", false, "list only hosts whose name has several keys")
	return c
}

func (p *program) printHosts(hosts []knownHost) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	for _, h := range hosts {
		fmt.Fprintf(w, "%s\t%s\tsince %s\n", h.Host, h.Key, stamp(h.Since))
		for _, other := range h.Conflicts {
			fmt.Fprintf(w, "  conflict\t%s\tsince %s\n", other.Key, stamp(other.Since))
		}
	}
	return w.Flush()
}

func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

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
			if h.Current, err = current(c.Context(), s, h); err != nil {
				return err
			}
			if p.json {
				return p.JSON(h)
			}
			if err := errors.Join(p.printHosts([]knownHost{h}), p.printCurrent(h.Current)); err != nil || len(h.Conflicts) == 0 {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "if %s was replaced and the first key is gone with the old machine: corpus host forget %s\n",
				h.Host, h.Host)
			return err
		},
	}
}

// current reads the record of a host; nil for none that counts.
func current(ctx context.Context, s store.Store, h knownHost) (*currentHost, error) {
	known := hostkey.Registry{h.Host: append([]hostkey.Registered{{Key: h.Key, Since: h.Since}}, h.Conflicts...)}
	keys := func(context.Context, store.Store) (hostkey.Registry, error) { return known, nil }
	v, err := fleet.Look(ctx, fleet.Query{Store: s, Now: time.Now(), SilentAfter: silentAfter, Keys: keys, Known: known, Host: h.Host})
	if err != nil || len(v.Hosts) == 0 {
		return nil, err
	}
	detail, err := hostrecord.Read(ctx, s, known, v.Hosts[0].Listed)
	return &currentHost{v.Hosts[0], detail}, err
}

func (p *program) printCurrent(h *currentHost) error {
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
	line("run", h.Run+", "+h.Outcome+", exit code "+strconv.Itoa(h.Exit)+", reported "+stamp(h.Seen))
	line("has", placesText(h.Project, h.Base, h.Service))
	line("wanted", placesText(h.Project, h.WantedBase, h.Wanted))
	line("agent", h.Agent)
	line("error", strings.ReplaceAll(h.Error, "\n", "; "))
	line("hint", strings.ReplaceAll(h.Hint, "\n", "; "))
	return w.Flush()
}

// stateText is the state of a host with what else is to be said of it.
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
		return knownHost{}, exit.WithCode(exit.Usage, diag.WithHint(
			fmt.Errorf("the store has no key of a host %s", trust.Printable(name)),
			"`corpus host ls` lists those that it knows; a host registers its key with its first report (reports.upload)"))
	}
	return newKnownHost(name, keys), nil
}

func (p *program) hostForgetCommand() *cobra.Command {
	key := ""
	c := &cobra.Command{
		Use:   "forget NAME",
		Short: "Remove the key of a host that was replaced",
		Long: `forget removes the valid key of a host from the store. If other keys were registered for the same name, the first
of them becomes valid; otherwise the next machine with this name registers its key. Reports that are signed with
the removed key no longer count, and the host's record is removed, so that corpus fleet no longer shows it. With
--key a conflicting key is removed instead, such as that of a machine that had the name by mistake.

It needs permission to list the store and to delete below hosts/ and fleet/. A machine that still has the removed
key registers it again within a day.`,
		Example: `  corpus host forget myapp-production-3 --store s3://bucket/prefix
  corpus host forget myapp-production-3 --key Vn2kM7 --store s3://bucket/prefix`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := p.openStore()
			if err != nil {
				return err
			}
			return p.forgetHost(c.Context(), s, args[0], key)
		},
	}
	c.Flags().StringVar(&key, "key", "", "the key to remove, or its beginning")
	return c
}

// forgotten is the result of `corpus host forget`.
type forgotten struct {
	Host    string         `json:"host"`
	Removed hostkey.Public `json:"removed"`
	Key     hostkey.Public `json:"key,omitempty"` // the key that is valid now
}

func (p *program) forgetHost(ctx context.Context, s store.Store, name, key string) error {
	h, err := p.hostInStore(ctx, s, name)
	if err != nil {
		return err
	}
	keys := append([]hostkey.Registered{{Key: h.Key, Since: h.Since}}, h.Conflicts...)
	at, err := chosenKey(keys, name, key)
	if err != nil {
		return err
	}
	result := forgotten{Host: name, Removed: keys[at].Key}
	records, err := hostrecord.List(ctx, s, "")
	if err != nil {
		return err
	}
	for _, object := range records.SignedBy(name, result.Removed) {
		if err := s.Delete(ctx, object); err != nil {
			return fmt.Errorf("removing the record of %s: %w", name, err)
		}
	}
	p.recallKeys().forget(p, name)
	if err := s.Delete(ctx, hostkey.Place(name, result.Removed)); err != nil {
		return fmt.Errorf("removing the key of %s: %w", name, err)
	}
	text := fmt.Sprintf("removed %s of %s; the next machine of this name registers its key", result.Removed, name)
	if left := slices.Delete(keys, at, at+1); len(left) > 0 {
		result.Key = left[0].Key
		text = fmt.Sprintf("removed %s of %s; %s counts", result.Removed, name, result.Key)
	}
	return p.answer(result, "%s", text)
}

// chosenKey returns the index of the only key with a prefix, or of the first key if the prefix is empty.
func chosenKey(keys []hostkey.Registered, name, begins string) (int, error) {
	if begins == "" {
		return 0, nil
	}
	found := -1
	for i, k := range keys {
		if !strings.HasPrefix(string(k.Key), begins) {
			continue
		}
		if found >= 0 {
			return 0, exit.WithCode(exit.Usage, diag.WithHint(
				fmt.Errorf("several keys of %s begin with %s", name, begins), "write more of it"))
		}
		found = i
	}
	if found < 0 {
		return 0, exit.WithCode(exit.Usage, diag.WithHint(
			errors.New("no key of "+name+" begins with "+begins), "`corpus host show %s` lists them", name))
	}
	return found, nil
}
