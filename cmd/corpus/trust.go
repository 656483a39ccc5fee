package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) rootCommand() *cobra.Command {
	c := &cobra.Command{Use: "root", Short: "Show and replace the root of trust"}
	c.AddCommand(p.rootShowCommand(), p.rootChangeCommand())
	return c
}

// roleView is the output of `corpus root show` about one role.
type roleView struct {
	Role string `json:"role"`
	trust.Delegation
	Expires time.Time `json:"expires,omitzero"`
}

func (p *program) rootShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "List which keys may sign each role, and when it expires",
		Example: `  corpus root show --store s3://bucket/prefix --trust-root keys/root.json`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, done, err := p.reader(c.Context())
			if err != nil {
				return err
			}
			defer done()
			views := roleViews(c.Context(), client)
			if p.json {
				return p.JSON(views)
			}
			w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
			for _, v := range views {
				until := "-"
				if !v.Expires.IsZero() {
					until = v.Expires.Format("2006-01-02")
				}
				fmt.Fprintf(w, "%s\tuntil %s\t%d of\t%s\n", v.Role, until, v.Threshold, strings.Join(v.Keys, "\n\t\t\t"))
			}
			return w.Flush()
		},
	}
}

func roleViews(ctx context.Context, client *trust.Client) []roleView {
	set := client.Trusted()
	expires := map[string]time.Time{
		tuf.RoleRoot: set.Root.Signed.Expires, tuf.RoleTargets: set.Targets[tuf.RoleTargets].Signed.Expires,
		tuf.RoleSnapshot: set.Snapshot.Signed.Expires, tuf.RoleTimestamp: set.Timestamp.Signed.Expires,
	}
	var views []roleView
	roles := append([]string{tuf.RoleRoot, tuf.RoleTargets, tuf.RoleSnapshot, tuf.RoleTimestamp}, client.Projects()...)
	if client.Delegation(trust.AttestationRole).Threshold > 0 {
		roles = append(roles, trust.AttestationRole)
	}
	for _, role := range roles {
		v := roleView{Role: role, Delegation: client.Delegation(role), Expires: expires[role]}
		if _, top := expires[role]; !top {
			// A role whose signatures are invalid is listed too, since this command is used to find the reason.
			if signed, err := client.Project(ctx, role); err == nil {
				v.Expires = signed.Signed.Expires
			}
		}
		views = append(views, v)
	}
	return views
}

func (p *program) rootChangeCommand() *cobra.Command {
	var add, remove, thresholds []string
	renew := false
	c := &cobra.Command{
		Use:   "change",
		Short: "Replace the root: keys of root, targets, snapshot and timestamp",
		Long: `change makes the next root. It needs as many root keys as the present root requires, and as the new one
requires. Hosts follow the roots one by one from the one they know to the newest. Roles that get other keys are
signed with them in the same step, if necessary with an intermediate root that allows both to sign. If a key for
that is missing nothing is written, unless --at-once is given.

With --draft the root is written to a file instead, which the owners of root keys sign (` + "`corpus sign`" + `) and
an owner of the keys of snapshot and timestamp commits (` + "`corpus import`" + `).`,
		Example: `  corpus root change --add-key root=bob.pub --threshold root=2 --store s3://bucket/prefix --keys keys
  corpus root change --remove-key timestamp=3f2a9c1b --draft root.draft --store s3://bucket/prefix --keys keys
  corpus root change --renew --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			change, err := rootChange(add, remove, thresholds)
			if err != nil {
				return exit.WithCode(exit.Usage, err)
			}
			change.Renew = renew
			return p.changeRoot(c.Context(), change)
		},
	}
	cli.RepeatedVar(c.Flags(), &add, "add-key", "", "ROLE=PUB: add this public key to the role; may be repeated")
	cli.RepeatedVar(c.Flags(), &remove, "remove-key", "",
		"ROLE=ID or ROLE=PUB: remove this key from the role; may be repeated")
	cli.RepeatedVar(c.Flags(), &thresholds, "threshold", "",
		"ROLE=N: number of the role's keys that must sign; may be repeated")
	c.Flags().BoolVar(&renew, "renew", false, "sign the root again although nothing else changes")
	p.draftFlag(c)
	p.atOnceFlag(c)
	return c
}

// rootChange parses the flags of `corpus root change`.
func rootChange(add, remove, thresholds []string) (roots.Change, error) {
	c := roots.Change{Add: map[string][]*tuf.Key{}, Remove: map[string][]string{}, Threshold: map[string]int{}}
	errs := []error{
		each(add, func(role, file string) error {
			key, err := keyring.ReadPublic(file)
			c.Add[role] = append(c.Add[role], key)
			return err
		}),
		each(remove, func(role, key string) error {
			ids, err := keyIDs([]string{key})
			c.Remove[role] = append(c.Remove[role], ids...)
			return err
		}),
		each(thresholds, func(role, number string) error {
			n, err := strconv.Atoi(number)
			if err != nil {
				return diag.Usage.Hint(fmt.Errorf("--threshold %s=%s: a number was expected", role, number),
					"write ROLE=N, such as root=2")
			}
			c.Threshold[role] = n
			return nil
		}),
	}
	return c, errors.Join(errs...)
}

// each parses flags of the form ROLE=VALUE.
func each(flags []string, take func(role, value string) error) error {
	for _, f := range flags {
		role, value, ok := strings.Cut(f, "=")
		if !ok || !slices.Contains(tuf.TopRoles(), role) {
			return diag.Usage.Hint(fmt.Errorf("%q does not name a role of the root", f),
				"write ROLE=VALUE, with root, targets, snapshot or timestamp")
		}
		if err := take(role, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) changeRoot(ctx context.Context, change roots.Change) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	result, err := roots.Apply(ctx, publisher, change)
	if err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	return p.answer(result, "%s", rootText(result))
}

func rootText(r roots.Result) string {
	text := fmt.Sprintf("root %d is in place, until %s", r.Version, r.Expires.Format("2006-01-02"))
	if len(r.Unsigned) > 0 {
		text += fmt.Sprintf("\nhosts refuse the store until these are signed with their new keys: %s\n"+
			"  targets: corpus export, sign, import; snapshot and timestamp: corpus refresh --rebuild",
			strings.Join(r.Unsigned, ", "))
	}
	return text
}
