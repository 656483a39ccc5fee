// Package pdbedit implements pdbedit.managed and pdbedit.absent, which manage the accounts of Samba.
//
// All accounts are read in one call. The password of a new account is passed on the standard input of pdbedit.
// A declared hash is passed on its command line, since pdbedit accepts it nowhere else. Both are redacted in
// reports.
package pdbedit

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of pdbedit.
func Functions() module.Table {
	db := &database{}
	managed := func() module.Resource { return &managed{db: db} }
	return module.Table{
		"managed": managed,
		"present": managed,
		"absent":  func() module.Resource { return &absent{db: db} },
	}
}

// managed implements pdbedit.managed and pdbedit.present.
type managed struct {
	Name           string  `sls:"name"`
	Login          any     `sls:"login"` // no effect: the name is the login, as in Salt
	Password       string  `sls:"password"`
	PasswordHashed bool    `sls:"password_hashed"` // the password is an NT hash
	Domain         *string `sls:"domain"`
	Profile        *string `sls:"profile"`
	Script         *string `sls:"script"`
	Drive          *string `sls:"drive"`
	Homedir        *string `sls:"homedir"`
	Fullname       *string `sls:"fullname"`
	AccountDesc    *string `sls:"account_desc"`
	MachineSID     any     `sls:"machine_sid"` // no effect, as in Salt
	UserSID        *string `sls:"user_sid"`
	AccountControl *string `sls:"account_control"` // any of N, D, H, L and X
	ResetHours     bool    `sls:"reset_login_hours"`
	ResetCount     bool    `sls:"reset_bad_password_count"`

	db      *database
	isNew   bool
	changes *value.Map
	options []string
	secret  bool // the password must change
}

func (m *managed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := m.Valid(); err != nil {
		return module.Diff{}, err
	}
	all, err := m.db.accounts(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	now, ok := all[m.Name]
	m.isNew, m.changes, m.options, m.secret = !ok, value.NewMap(), nil, false
	if m.isNew && m.Password == "" {
		return module.Diff{}, diag.Argument.Hint(fmt.Errorf("there is no Samba account %s, and a new one needs a password",
			m.Name), "add `- password: ...`")
	}
	m.compare(now)
	switch {
	case m.isNew:
		return module.Diff{Changes: value.NewMap(m.Name, "created"), Planned: value.NewMap(),
			Comment: "Samba would get the account " + m.Name}, nil
	case m.changes.Len() == 0:
		return module.Diff{Comment: "Samba's account " + m.Name + " is as declared"}, nil
	}
	return module.Diff{Changes: value.NewMap(m.Name, m.changes), Planned: value.NewMap(),
		Comment: "Samba's account " + m.Name + " would change"}, nil
}

var ntHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Fa-f]{32}$`) })

func (m *managed) Valid() error {
	if m.Name == "" || m.Name[0] == '-' || strings.ContainsAny(m.Name, ":\n") {
		return fmt.Errorf("%q is not a login", m.Name)
	}
	if m.PasswordHashed && !ntHash().MatchString(m.Password) {
		return diag.Argument.Hint(errors.New("the password is not an NT hash"),
			"an NT hash has 32 hexadecimal digits; leave password_hashed out for a plain password")
	}
	if strings.ContainsAny(m.Password, "\r\n") {
		return errors.New("the password has a line break")
	}
	return nil
}

// compare determines the differences of an account and the options of pdbedit that remove them.
func (m *managed) compare(now account) {
	if m.Password != "" {
		wanted := strings.ToUpper(m.Password)
		if !m.PasswordHashed {
			wanted = hash(m.Password)
		}
		if now["nt hash"] != wanted {
			m.changes.Set("nt hash", value.NewMap("old", "(hidden)", "new", "(hidden)"))
			m.secret = true
		}
	}
	for _, f := range []struct {
		label, flag string
		wanted      *string
	}{
		{"domain", "--domain=", m.Domain}, {"full name", "--fullname=", m.Fullname},
		{"account desc", "--account-desc=", m.AccountDesc},
		{"home directory", "--homedir=", m.Homedir}, {"homedir drive", "--drive=", m.Drive},
		{"profile path", "--profile=", m.Profile},
		{"logon script", "--script=", m.Script},
	} {
		if f.wanted != nil && now[f.label] != *f.wanted {
			m.set(f.label, now[f.label], *f.wanted, f.flag+*f.wanted)
		}
	}
	if m.UserSID != nil && !strings.HasSuffix(now["user sid"], *m.UserSID) {
		m.set("user sid", now["user sid"], *m.UserSID, "-U"+*m.UserSID)
	}
	if m.AccountControl != nil && flags(now["account flags"]) != flags(*m.AccountControl) {
		wanted := "[" + flags(*m.AccountControl) + "]"
		m.set("account flags", now["account flags"], wanted, "--account-control="+wanted)
	}
	if hours := now["logon hours"]; m.ResetHours && strings.Trim(hours, "F") != "" {
		m.set("logon hours", hours, strings.Repeat("F", len(hours)), "--logon-hours-reset")
	}
	if count := now["bad password count"]; m.ResetCount && count != "0" && count != "" {
		m.set("bad password count", count, "0", "--bad-password-count-reset")
	}
}

func (m *managed) set(label, old, wanted, option string) {
	m.changes.Set(label, value.NewMap("old", old, "new", wanted))
	m.options = append(m.options, option)
}

// flags returns the settable flags of an account, in order.
func flags(text string) string {
	var set []string
	for _, flag := range []string{"N", "D", "H", "L", "X"} {
		if strings.Contains(strings.ToUpper(text), flag) {
			set = append(set, flag)
		}
	}
	return strings.Join(slices.Compact(set), "")
}

func (m *managed) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if m.isNew {
		password := m.Password
		if m.PasswordHashed {
			password = "" // its hash is set afterwards
		}
		if err := run(ctx, h, m.Name, password+"\n"+password+"\n", "--create", "--user="+m.Name,
			"--password-from-stdin"); err != nil {
			return module.Report{}, err
		}
		m.secret = m.secret && m.PasswordHashed
	}
	if err := m.setPassword(ctx, h); err != nil {
		return module.Report{Changes: value.NewMap()}, err
	}
	if len(m.options) > 0 {
		if err := run(ctx, h, m.Name, "", append([]string{"--modify", "--user=" + m.Name}, m.options...)...); err != nil {
			return module.Report{Changes: value.NewMap()}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: "Samba's account " + m.Name + " is as declared"}, nil
}

// setPassword changes the password of an existing account. Samba accepts a hash only on the command line, where
// every user of the host can read it while pdbedit runs.
func (m *managed) setPassword(ctx context.Context, h *host.Host) error {
	switch {
	case !m.secret:
		return nil
	case m.PasswordHashed:
		m.options = append(m.options, "--set-nt-hash="+strings.ToUpper(m.Password))
		return nil
	}
	return tool(ctx, h, m.Name, m.Password+"\n"+m.Password+"\n", "smbpasswd", "-s", m.Name)
}

func run(ctx context.Context, h *host.Host, name, stdin string, args ...string) error {
	return tool(ctx, h, name, stdin, append([]string{"pdbedit"}, args...)...)
}

func tool(ctx context.Context, h *host.Host, name, stdin string, argv ...string) error {
	_, err := h.Tool(ctx, host.Tool{
		Argv: argv, Stdin: stdin, Package: "samba",
		Changes: host.Subject{Kind: "samba account", Name: name},
	})
	return host.Failed(diag.Account, err, "Samba's account "+name,
		"an account needs a user of the system of that name: make it in a user.present state that this one requires")
}

// absent implements pdbedit.absent.
type absent struct {
	Name string `sls:"name"`

	db *database
}

func (a *absent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	all, err := a.db.accounts(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	if _, ok := all[a.Name]; !ok {
		return module.Diff{Comment: "Samba has no account " + a.Name}, nil
	}
	return module.Diff{Changes: value.NewMap(a.Name, "deleted"), Planned: value.NewMap(),
		Comment: "Samba's account " + a.Name + " would be deleted"}, nil
}

func (a *absent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := run(ctx, h, a.Name, "", "--delete", "--user="+a.Name); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "Samba's account " + a.Name + " was deleted"}, nil
}
