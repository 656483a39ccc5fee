package main

import (
	"context"
	"errors"
	"fmt"
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
