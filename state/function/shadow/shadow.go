// Package shadow implements shadow.*: the hashed passwords of users and their expiry.
package shadow

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// shadow reads and changes passwords and their expiry.
type shadow struct{ *function.Facts }

// Functions returns the functions of shadow that templates may call.
func Functions(f *function.Facts) function.Table {
	s := shadow{f}
	return function.Table{
		"shadow.info": function.Of("name, root=None", s.info),
		"shadow.list_users": function.Of("root=None", func(any) ([]string, error) {
			return function.AccountNames(f.Host, "/etc/shadow")
		}),
	}
}

// Acting returns the functions of shadow that change the host.
func Acting(f *function.Facts) function.Table {
	s := shadow{f}
	days := func(set func(*host.ShadowChange, *int)) any {
		return func(ctx context.Context, name string, days int, _ any) (bool, error) {
			c := host.ShadowChange{}
			set(&c, &days)
			return s.change(ctx, name, c)
		}
	}
	return function.Table{
		"shadow.set_password":    function.Of("name, password, use_usermod=False, root=None", s.setPassword),
		"shadow.del_password":    function.Of("name, root=None", s.deletePassword),
		"shadow.lock_password":   function.Of("name, root=None", s.lock),
		"shadow.unlock_password": function.Of("name, root=None", s.unlock),
		"shadow.set_date": function.Of("name, date, root=None", days(func(c *host.ShadowChange, n *int) {
			c.LastChange = n
		})),
		"shadow.set_mindays": function.Of("name, mindays, root=None", days(func(c *host.ShadowChange, n *int) {
			c.Min = n
		})),
		"shadow.set_maxdays": function.Of("name, maxdays, root=None", days(func(c *host.ShadowChange, n *int) {
			c.Max = n
		})),
		"shadow.set_warndays": function.Of("name, warndays, root=None", days(func(c *host.ShadowChange, n *int) {
			c.Warn = n
		})),
		"shadow.set_inactdays": function.Of("name, inactdays, root=None", days(func(c *host.ShadowChange, n *int) {
			c.Inactive = n
		})),
		"shadow.set_expire": function.Of("name, expire, root=None", days(func(c *host.ShadowChange, n *int) {
			c.Expire = n
		})),
	}
}

// info returns the attributes of a user's password. All values are empty if the user does not exist.
func (s shadow) info(name string, _ any) (*value.Map, error) {
	e, ok, err := s.Host.Accounts.Shadow(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return value.NewMap("name", "", "passwd", "", "lstchg", "", "min", "", "max", "", "warn", "", "inact", "", "expire",
			""), nil
	}
	return value.NewMap("name", e.Name, "passwd", e.Hash, "lstchg", e.LastChange, "min", e.Min, "max", e.Max, "warn",
		e.Warn,
		"inact", e.Inactive, "expire", e.Expire), nil
}

func (s shadow) change(ctx context.Context, name string, c host.ShadowChange) (bool, error) {
	if err := s.Host.Accounts.Allowed("changing the password of " + name); err != nil {
		return false, err
	}
	if _, ok, err := s.Host.Accounts.User(name); err != nil || !ok {
		if err == nil {
			err = fmt.Errorf("user %s does not exist", name)
		}
		return false, err
	}
	err := s.Host.Accounts.SetShadow(ctx, name, c)
	return err == nil, err
}

// setPassword sets a password, given as a hash.
func (s shadow) setPassword(ctx context.Context, name, hash string, _, _ any) (bool, error) {
	return s.change(ctx, name, host.ShadowChange{Hash: &hash})
}

func (s shadow) deletePassword(ctx context.Context, name string, _ any) (bool, error) {
	none := ""
	return s.change(ctx, name, host.ShadowChange{Hash: &none})
}

func (s shadow) lock(ctx context.Context, name string, _ any) (bool, error) {
	return s.rehash(ctx, name, func(hash string) string { return "!" + strings.TrimPrefix(hash, "!") })
}

func (s shadow) unlock(ctx context.Context, name string, _ any) (bool, error) {
	return s.rehash(ctx, name, func(hash string) string { return strings.TrimLeft(hash, "!") })
}

// rehash changes the password field. If the field does not change, nothing is written.
func (s shadow) rehash(ctx context.Context, name string, change func(string) string) (bool, error) {
	e, ok, err := s.Host.Accounts.Shadow(name)
	if err != nil || !ok {
		return false, err
	}
	hash := change(e.Hash)
	if hash == e.Hash {
		return true, nil
	}
	if hash == "" {
		return false, fmt.Errorf("user %s has no password; unlocking it would allow a login without one", name)
	}
	return s.change(ctx, name, host.ShadowChange{Hash: &hash})
}
