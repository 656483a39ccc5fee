package rabbitmq

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// user implements rabbitmq_user.present.
type user struct {
	server
	Name     string  `sls:"name"`
	Password *string `sls:"password"`
	Force    bool    `sls:"force"` // always set the password, or remove it if none is declared
	Tags     any     `sls:"tags"`  // a list, or text with spaces or commas
	Perms    any     `sls:"perms"` // a list of {VHOST: [CONFIGURE, WRITE, READ]}
}

func (u *user) what() string { return "the user " + u.Name }
func (u *user) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, u)
}
func (u *user) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, u)
}

func (u *user) find(ctx context.Context, h *host.Host) (*todo, error) {
	t := newTodo()
	perms, err := u.permissions()
	if err != nil {
		return t, err
	}
	rows, err := u.rows(ctx, h, "user", "list_users")
	if err != nil {
		return t, err
	}
	at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == u.Name })
	var tags []string
	have := map[string][]string{}
	if at < 0 {
		u.create(t)
	} else {
		if len(rows[at]) > 1 {
			tags = strings.FieldsFunc(rows[at][1], func(r rune) bool { return strings.ContainsRune("[], ", r) })
		}
		if have, err = u.granted(ctx, h); err != nil {
			return t, err
		}
		u.findPassword(ctx, h, t)
	}
	if want := tagsOf(u.Tags); u.Tags != nil && !sameWords(tags, want) {
		t.add("tags", value.Strings(tags...), value.Strings(want...),
			ctlStep(append([]string{"set_user_tags", u.Name}, want...)...))
	}
	u.findPermissions(t, have, perms)
	return t, nil
}

// create adds a user. A user without a password gets a random one first, which rabbitmqctl requires and which
// is removed afterwards.
func (u *user) create(t *todo) {
	add := step{program: ctl, args: []string{"add_user", u.Name}}
	if u.Password != nil {
		add.stdin = *u.Password + "\n"
		t.add("user", "", u.Name, add)
		return
	}
	add.stdin = rand.Text() + "\n"
	t.add("user", "", u.Name, add, ctlStep("clear_password", u.Name))
}

// findPassword adds the change of an existing user's password to t. It checks a declared password by a login.
func (u *user) findPassword(ctx context.Context, h *host.Host, t *todo) {
	switch {
	case u.Password == nil && u.Force:
		t.add("password", "", "removed", ctlStep("clear_password", u.Name))
	case u.Password == nil:
		return
	default:
		if _, err := u.program(ctl, *u.Password+"\n").Ask(ctx, h, "authenticate_user", u.Name); err != nil || u.Force {
			t.add("password", "",
				"set", step{program: ctl, args: []string{"change_password", u.Name}, stdin: *u.Password + "\n"})
		}
	}
}

// granted returns the permissions of the user by virtual host.
func (u *user) granted(ctx context.Context, h *host.Host) (map[string][]string, error) {
	rows, err := u.rows(ctx, h, "vhost", "list_user_permissions", u.Name)
	have := map[string][]string{}
	for _, row := range rows {
		have[row[0]] = row[1:]
	}
	return have, err
}

// grant holds the permissions in a virtual host.
type grant struct {
	vhost string
	may   []string // configure, write, read
}

func (u *user) permissions() (grants []grant, err error) {
	items := []any{u.Perms}
	if list, ok := u.Perms.(*value.List); ok {
		items = list.Items
	}
	for _, item := range items {
		m, ok := item.(*value.Map)
		if !ok {
			if item == nil {
				continue
			}
			return nil, wrongPerms(item)
		}
		for vhost, v := range m.All() {
			g, err := permissionsIn(value.Str(vhost), v)
			if err != nil {
				return nil, err
			}
			grants = append(grants, g)
		}
	}
	return grants, nil
}

// permissionsIn parses the permissions of a user in a virtual host: the patterns of what it may configure, write and
// read.
func permissionsIn(vhost string, v any) (grant, error) {
	may, ok := v.(*value.List)
	if !ok || may.Len() != 3 {
		return grant{}, wrongPerms(v)
	}
	g := grant{vhost: vhost}
	for _, pattern := range may.Items {
		g.may = append(g.may, value.Str(pattern))
	}
	return g, nil
}

func wrongPerms(v any) error {
	return diag.Argument.Hint(fmt.Errorf("%s is not a permission", value.Repr(v)),
		"write `- perms: [{/: ['.*', '.*', '.*']}]`: what may be configured, written and read")
}

func (u *user) findPermissions(t *todo, have map[string][]string, want []grant) {
	old, now := value.NewMap(), value.NewMap()
	var steps []step
	for _, g := range want {
		if slices.Equal(have[g.vhost], g.may) {
			continue
		}
		old.Set(g.vhost, value.Strings(have[g.vhost]...))
		now.Set(g.vhost, value.Strings(g.may...))
		steps = append(steps, ctlStep(append([]string{"set_permissions", "-p", g.vhost, u.Name}, g.may...)...))
	}
	if len(steps) > 0 {
		t.add("perms", old, now, steps...)
	}
}

// tagsOf parses tags: a list, or text with spaces or commas.
func tagsOf(v any) (tags []string) {
	list, ok := v.(*value.List)
	if !ok {
		return strings.FieldsFunc(value.Str(v), func(r rune) bool { return r == ' ' || r == ',' })
	}
	for _, item := range list.Items {
		tags = append(tags, value.Str(item))
	}
	return tags
}

func sameWords(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
