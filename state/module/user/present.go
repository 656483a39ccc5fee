package user

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// present implements user.present.
type present struct {
	Name            string   `sls:"name"`
	UID             *int     `sls:"uid"`
	GID             *string  `sls:"gid"` // name or number
	GIDFromName     bool     `sls:"gid_from_name"`
	UserGroup       *bool    `sls:"usergroup"`
	Groups          []string `sls:"groups"` // nil leaves them unchanged
	OptionalGroups  []string `sls:"optional_groups"`
	RemoveGroups    bool     `sls:"remove_groups"`
	Home            string   `sls:"home"`
	CreateHome      bool     `sls:"createhome"`
	Password        string   `sls:"password"` // a hash, or the password itself with hash_password
	HashPassword    bool     `sls:"hash_password"`
	EnforcePassword bool     `sls:"enforce_password"`
	EmptyPassword   bool     `sls:"empty_password"`
	PasswordLock    *bool    `sls:"password_lock"`
	Shell           string   `sls:"shell"`
	Unique          bool     `sls:"unique"`
	System          bool     `sls:"system"`
	FullName        *string  `sls:"fullname"`
	RoomNumber      *string  `sls:"roomnumber"`
	WorkPhone       *string  `sls:"workphone"`
	HomePhone       *string  `sls:"homephone"`
	Other           *string  `sls:"other"`
	LoginClass      any      `sls:"loginclass"` // no effect: only BSD has login classes
	Date            *int     `sls:"date"`       // this and the next five are in days
	MinDays         *int     `sls:"mindays"`
	MaxDays         *int     `sls:"maxdays"`
	InactDays       *int     `sls:"inactdays"`
	WarnDays        *int     `sls:"warndays"`
	Expire          *int     `sls:"expire"`
	NoLogInit       bool     `sls:"nologinit"`
	AllowUIDChange  bool     `sls:"allow_uid_change"`
	AllowGIDChange  bool     `sls:"allow_gid_change"`

	// Planned lists what earlier steps of a dry run would do to accounts.
	Planned *value.List `sls:"__planned__"`

	expected host.Expected // the accounts of Planned
	optional []string      // the optional groups that exist
	change   *change       // set by Check for an existing user
}

func (p *present) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Accounts.Allowed("user " + p.Name); err != nil {
		return module.Diff{}, err
	}
	if err := p.Valid(); err != nil {
		return module.Diff{}, err
	}
	p.expected = module.ExpectedAccounts(p.Planned)
	if err := p.findGroups(h); err != nil {
		return module.Diff{}, err
	}
	info, ok, err := Lookup(h, p.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if !ok || slices.Contains(p.expected.GoneUsers, p.Name) {
		return p.checkNew(h), nil
	}
	if p.change, err = p.compare(h, info); err != nil {
		return module.Diff{}, err
	}
	return p.change.diff(p.warnings())
}

func (p *present) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if p.change == nil {
		return p.applyNew(ctx, h)
	}
	return p.applyChange(ctx, h)
}

// Valid returns an error for values that /etc/passwd cannot represent.
func (p *present) Valid() error {
	var problems []error
	for name, v := range map[string]*string{"fullname": p.FullName, "roomnumber": p.RoomNumber, "workphone": p.WorkPhone,
		"homephone": p.HomePhone} {
		if v != nil && strings.Contains(*v, ",") {
			problems = append(problems, fmt.Errorf("%s %q has a comma, which ends a field of the account's comment", name, *v))
		}
	}
	structsort.Func(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for _, text := range []string{p.Name, p.Home, p.Shell, p.gecosOf(gecos{}).String()} {
		if strings.ContainsAny(text, ":\n") {
			problems = append(problems, fmt.Errorf("%q has a colon or a line break, which /etc/passwd cannot hold", text))
		}
	}
	return errors.Join(problems...)
}

// findGroups returns an error if a declared group does not exist. It selects the optional groups that exist.
func (p *present) findGroups(h *host.Host) error {
	var missing []string
	for _, name := range p.Groups {
		_, ok, err := p.expected.Group(h.Accounts, name)
		if err != nil {
			return err
		}
		if !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		err := diag.Prerequisite.Hint(fmt.Errorf("these groups of user %s do not exist: %s", p.Name, strings.Join(missing,
			", ")), "make them in group.present states that this one requires, or name them in optional_groups")
		return host.WithMissing(err, host.AGroup, missing...)
	}
	p.optional = nil
	for _, name := range p.OptionalGroups {
		_, ok, err := p.expected.Group(h.Accounts, name)
		if err != nil {
			return err
		}
		if ok {
			p.optional = append(p.optional, name)
		}
	}
	return nil
}

// memberships returns the groups of which the user should be a member, besides the primary group.
func (p *present) memberships() []string {
	names := slices.Concat(p.Groups, p.optional)
	slices.Sort(names)
	return slices.Compact(names)
}

// gecosOf returns g with the declared fields replaced.
func (p *present) gecosOf(g gecos) gecos {
	for i, v := range []*string{p.FullName, p.RoomNumber, p.WorkPhone, p.HomePhone, p.Other} {
		if v != nil {
			g[i] = *v
		}
	}
	return g
}

// ownGroup returns the declared primary group by name or number; "" if none is declared.
func (p *present) ownGroup(h *host.Host) (string, error) {
	if p.GID != nil {
		return *p.GID, nil
	}
	if !p.GIDFromName && (p.UserGroup == nil || !*p.UserGroup) {
		return "", nil
	}
	_, ok, err := p.expected.Group(h.Accounts, p.Name)
	switch {
	case err != nil:
		return "", err
	case ok:
		return p.Name, nil
	case p.GIDFromName:
		err := diag.Prerequisite.Hint(fmt.Errorf("group %s does not exist, and gid_from_name asks for it", p.Name),
			"make it in a group.present state that this one requires")
		return "", host.WithMissing(err, host.AGroup, p.Name)
	}
	return "", nil
}

// warnings returns a warning for a password that does not look like a hash.
func (p *present) warnings() []string {
	if p.Password == "" || p.HashPassword || p.EmptyPassword || strings.ContainsAny(p.Password[:1], "$!*_") ||
		len(p.Password) == desLength {
		return nil
	}
	return []string{"password is not a hash, so no login with it can succeed; set hash_password: True if it is the " +
		"password itself"}
}

// desLength is the length of a DES hash, which has no prefix.
const desLength = 13
