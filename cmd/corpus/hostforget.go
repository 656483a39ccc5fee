package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) hostForgetCommand() *cobra.Command {
	yes, which := false, keyChoice{}
	c := &cobra.Command{
		Use:   "forget NAME...",
		Short: "Remove the keys of hosts that were replaced or no longer exist",
		Long: `forget removes the valid key of a host from the store. If other keys were registered for the same name, the first
of them becomes valid; otherwise the next machine with this name registers its key. Reports that are signed with
the removed key no longer count, and the host's record is removed, so that corpus fleet no longer shows it. With
--key a conflicting key is removed instead, such as that of a machine that had the name by mistake. With --all-keys every key
and record of the name is removed.

Several names may be given, and patterns such as 'myapp-testing-*', which match registered names. A pattern removes keys only
with --yes; without it forget lists the hosts and removes nothing.

It needs permission to list the store and to delete below hosts/ and fleet/. A machine that still has the removed
key registers it again within a day.`,
		Example: `  corpus host forget myapp-production-3 --store s3://bucket/prefix
  corpus host forget myapp-production-3 myapp-production-4 --store s3://bucket/prefix
  corpus host forget 'myapp-testing-*' --yes --store s3://bucket/prefix
  corpus host forget myapp-production-3 --key Vn2kM7 --store s3://bucket/prefix
  corpus host forget myapp-production-3 --all-keys --store s3://bucket/prefix`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := p.openStore()
			if err != nil {
				return err
			}
			names, err := p.namesToForget(c.Context(), s, args, yes)
			if err != nil {
				return err
			}
			return p.forgetHosts(c.Context(), s, names, which)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "remove the keys of all hosts that match a pattern")
	c.Flags().StringVar(&which.begins, "key", "", "the key to remove, or its beginning")
	c.Flags().BoolVar(&which.all, "all-keys", false, "remove every key of the names, also conflicts")
	c.MarkFlagsMutuallyExclusive("key", "all-keys")
	return c
}

// keyChoice selects keys of a host: the first one if it is zero.
type keyChoice struct {
	begins string // how the key begins
	all    bool
}

// forgotten is the result of `corpus host forget`.
type forgotten struct {
	Host    string         `json:"host"`
	Removed hostkey.Public `json:"removed"`
	Key     hostkey.Public `json:"key,omitempty"` // the key that is valid now
	// Others has further keys that were removed, with --all-keys.
	Others []hostkey.Public `json:"also_removed,omitempty"`
	Left   int              `json:"conflicts,omitempty"` // number of keys that are left besides Key
	all    bool             // no key is left
}

// namesToForget returns the names of the hosts that arguments name, which may be patterns.
func (p *program) namesToForget(ctx context.Context, s store.Store, args []string, yes bool) (names []string,
	err error) {
	if !slices.ContainsFunc(args, isPattern) {
		return slices.Compact(slices.Sorted(slices.Values(args))), nil
	}
	known, err := hostkey.List(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		if !isPattern(arg) {
			names = append(names, arg)
			continue
		}
		matching, err := matched(known, arg)
		if err != nil {
			return nil, err
		}
		names = append(names, matching...)
	}
	slices.Sort(names)
	if names = slices.Compact(names); !yes {
		return nil, exit.WithCode(exit.Usage, diag.Host.Hint(
			fmt.Errorf("nothing was removed; the names are those of %s: %s", diag.Count(len(names), "host"),
				strings.Join(names, ", ")), "give the command with --yes to remove their keys and records"))
	}
	return names, nil
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// matched returns the registered names that match a pattern. None is an error.
func matched(known hostkey.Registry, pattern string) (names []string, err error) {
	for name := range known {
		ok, err := path.Match(pattern, name)
		if err != nil {
			return nil, exit.WithCode(exit.Usage, diag.Host.Hint(fmt.Errorf("the pattern %q: %w", pattern, err),
				"* stands for any text, ? for one character and [a-c] for a range"))
		}
		if ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, exit.WithCode(exit.Usage, diag.Host.Hint(
			fmt.Errorf("no host with a registered key matches %q", pattern), "`corpus host ls` lists the names"))
	}
	return names, nil
}

// forgetHosts removes a key of each host and what it signed. It removes nothing if a host has no such key.
func (p *program) forgetHosts(ctx context.Context, s store.Store, names []string, which keyChoice) error {
	if len(names) > 1 && which.begins != "" {
		return exit.WithCode(exit.Usage, diag.Host.Hint(errors.New("--key is a key of one host, and several are named"),
			"name one host"))
	}
	var all []forgotten
	for _, name := range names {
		f, err := p.keyToForget(ctx, s, name, which)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	removed := hostkey.Registry{}
	for _, f := range all {
		removed[f.Host] = []hostkey.Registered{{Key: f.Removed}}
	}
	records, err := hostrecord.List(ctx, s, "", removed)
	if err != nil {
		return err
	}
	var text []string
	for _, f := range all {
		if err := p.forgetHost(ctx, s, f, records); err != nil {
			return err
		}
		text = append(text, f.text())
	}
	if len(all) == 1 {
		return p.answer(all[0], "%s", text[0])
	}
	return p.answer(all, "%s", strings.Join(text, "\n"))
}

// keyToForget returns the keys of a host to remove, and the one that is valid then.
func (p *program) keyToForget(ctx context.Context, s store.Store, name string, which keyChoice) (forgotten, error) {
	h, err := p.hostInStore(ctx, s, name)
	if err != nil {
		return forgotten{}, err
	}
	keys := append([]hostkey.Registered{{Key: h.Key, Since: h.Since}}, h.Conflicts...)
	if which.all {
		all, err := hostkey.AllOf(ctx, s, name)
		others := slices.DeleteFunc(all, func(k hostkey.Public) bool { return k == h.Key })
		return forgotten{Host: name, Removed: h.Key, Others: others, all: true}, err
	}
	at, err := chosenKey(keys, name, which.begins)
	if err != nil {
		return forgotten{}, err
	}
	f := forgotten{Host: name, Removed: keys[at].Key}
	if left := slices.Delete(keys, at, at+1); len(left) > 0 {
		f.Key, f.Left = left[0].Key, len(left)-1+h.Omitted
	}
	return f, nil
}

func (p *program) forgetHost(ctx context.Context, s store.Store, f forgotten, records hostrecord.Unchecked) error {
	objects := records.SignedBy(f.Host, f.Removed)
	if f.all {
		objects = records.Of(f.Host)
	}
	for _, object := range objects {
		if err := s.Delete(ctx, object); err != nil {
			return mayForget(fmt.Errorf("removing the record of %s: %w", f.Host, err))
		}
	}
	p.recallKeys().forget(p, f.Host)
	for _, key := range append(slices.Clone(f.Others), f.Removed) {
		if err := s.Delete(ctx, hostkey.Place(f.Host, key)); err != nil {
			return mayForget(fmt.Errorf("removing the key of %s: %w", f.Host, err))
		}
	}
	return nil
}

// mayForget gives an error of missing rights a hint with the role that has them.
func mayForget(err error) error {
	if errors.Is(err, store.ErrForbidden) {
		return diag.Credentials.Hint(err, "forgetting hosts takes s3:DeleteObject on hosts/* and fleet/* (docs/buckets.md)")
	}
	return err
}

func (f forgotten) text() string {
	switch {
	case f.Left > 0:
		return fmt.Sprintf("removed %s of %s; %s counts, with %s of this name left as conflicts: `corpus host forget %s "+
			"--all-keys` removes all", f.Removed, f.Host, f.Key, diag.Count(f.Left, "other key"), f.Host)
	case f.Key != "":
		return fmt.Sprintf("removed %s of %s; %s counts, the only key of this name now", f.Removed, f.Host, f.Key)
	case len(f.Others) > 0:
		return fmt.Sprintf("removed %s of %s; the next machine of this name registers its key",
			diag.Count(len(f.Others)+1, "key"), f.Host)
	}
	return fmt.Sprintf("removed %s of %s; the next machine of this name registers its key", f.Removed, f.Host)
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
			return 0, exit.WithCode(exit.Usage, diag.Host.Hint(
				fmt.Errorf("several keys of %s begin with %s", name, begins), "write more of it"))
		}
		found = i
	}
	if found < 0 {
		return 0, exit.WithCode(exit.Usage, diag.Host.Hint(
			errors.New("no key of "+name+" begins with "+begins), "`corpus host show %s` lists them", name))
	}
	return found, nil
}
