// Package mongodb implements mongodb_user.present and mongodb_user.absent with the client mongosh.
package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Tables returns the functions of mongodb_user.
func Tables() module.Registry {
	local := server{Host: "localhost", Port: 27017, Database: "admin"}
	return module.Registry{"mongodb_user": {
		"present": func() module.Resource { return &present{server: local} },
		"absent":  func() module.Resource { return &absent{server: local} },
	}}
}

// server holds the arguments for access to a MongoDB server. Commands are scripts on the standard input of the
// client, so that no command line contains a password.
type server struct {
	Name     string `sls:"name"`
	User     string `sls:"user"`
	Password string `sls:"password"`
	Host     string `sls:"host"`
	Port     int    `sls:"port"`
	Database string `sls:"database"`
	AuthDB   string `sls:"authdb"`
}

func (m *server) client(h *host.Host) program.Program {
	p := program.Program{Name: "mongosh", Package: "mongodb-mongosh", Dir: "/", Limit: time.Minute,
		Hide: client.Hiding(m.Password)}
	if _, ok := h.Which("mongosh"); !ok {
		if _, ok := h.Which("mongo"); ok {
			p.Name, p.Package = "mongo", "mongodb-clients"
		}
	}
	return p
}

func (m *server) Awaits(h *host.Host) (string, error) {
	p := m.client(h)
	if ok, err := p.Ready(h); err != nil || !ok {
		return p.Name, err
	}
	return "", nil
}

func (m *server) Missing(what string) error {
	return client.Missing(program.Program{Name: what, Package: "mongodb-mongosh"}, what)
}

func (m *server) Gone() bool { return false }

// text returns a value as a JavaScript literal.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "null" // not reached: strings and lists of strings can always be encoded
	}
	return string(data)
}

// script returns a script that logs in and then runs statements on the declared database.
func (m *server) script(statements ...string) string {
	var s strings.Builder
	if m.User != "" {
		db := m.AuthDB
		if db == "" {
			db = m.Database
		}
		fmt.Fprintf(&s, "db.getSiblingDB(%s).auth(%s, %s);\n", text(db), text(m.User), text(m.Password))
	}
	fmt.Fprintf(&s, "var target = db.getSiblingDB(%s);\n", text(m.Database))
	return s.String() + strings.Join(statements, "\n") + "\n"
}

func (m *server) call(ctx context.Context, h *host.Host, quiet bool, statements ...string) (string, error) {
	p := m.client(h)
	p.Stdin = m.script(statements...)
	args := []string{"--quiet", "--norc", "--host", m.Host, "--port", fmt.Sprint(m.Port), "--file", "/dev/stdin"}
	if p.Name == "mongo" {
		args = []string{"--quiet", "--norc", "--host", m.Host, "--port", fmt.Sprint(m.Port), "/dev/stdin"}
	}
	run := p.Do
	if quiet {
		run = p.Ask
	}
	out, err := run(ctx, h, args...)
	var failed *program.Error
	if errors.As(err, &failed) && (strings.Contains(failed.Stderr+failed.Stdout, "ECONNREFUSED") ||
		strings.Contains(failed.Stderr+failed.Stdout, "onnection refused")) {
		return out, client.NoServer(err, "MongoDB")
	}
	return out, err
}

func (m *server) Run(ctx context.Context, h *host.Host, statements []string) error {
	_, err := m.call(ctx, h, false, statements...)
	return err
}

// mark precedes the answer, since the client may print other text.
const mark = "corpus-answer:"

// roles returns the roles of a user as role@database; ok is false if the user does not exist.
func (m *server) roles(ctx context.Context, h *host.Host) (roles []string, ok bool, err error) {
	out, err := m.call(ctx, h, true,
		fmt.Sprintf("print(%s + JSON.stringify(target.getUser(%s)));", text(mark), text(m.Name)))
	if err != nil {
		return nil, false, err
	}
	return m.parseRoles(out)
}

// parseRoles parses the roles of a user in the database from the output of the shell.
func (m *server) parseRoles(out string) (roles []string, ok bool, err error) {
	_, answer, found := strings.Cut(out, mark)
	answer, _, _ = strings.Cut(answer, "\n")
	var user *struct {
		Roles []struct{ Role, DB string }
	}
	if err := json.Unmarshal([]byte(answer), &user); !found || err != nil {
		return nil, false, diag.Database.Hint(errors.New("MongoDB gives no answer that can be read"),
			"check user, password and authdb")
	}
	if user == nil {
		return nil, false, nil
	}
	for _, r := range user.Roles {
		if r.DB == m.Database {
			roles = append(roles, r.Role)
		}
	}
	return roles, true, nil
}

// present implements mongodb_user.present.
type present struct {
	server
	Passwd string `sls:"passwd,required"`
	Roles  any    `sls:"roles"`
}

func (u *present) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, u)
}
func (u *present) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, u)
}

func (u *present) Run(ctx context.Context, h *host.Host, statements []string) error {
	_, err := u.call(ctx, h, false, statements...)
	var failed *program.Error
	if errors.As(err, &failed) {
		hide := client.Hiding(u.Passwd)
		failed.Stdout, failed.Stderr = hide(failed.Stdout), hide(failed.Stderr)
	}
	return err
}

func (u *present) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	wanted := client.List(u.Roles)
	have, ok, err := u.roles(ctx, h)
	if err != nil {
		return client.Work{}, err
	}
	if wanted == nil {
		wanted = []string{}
	}
	if !ok {
		return client.Created("user", u.Name,
			fmt.Sprintf("target.createUser({user: %s, pwd: %s, roles: %s});", text(u.Name), text(u.Passwd), text(wanted))), nil
	}
	before, after := slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(wanted))
	if slices.Equal(before, after) {
		return client.Work{Fine: "the user " + u.Name + " is as declared"}, nil
	}
	return client.Work{Statements: []string{fmt.Sprintf("target.updateUser(%s, {roles: %s});", text(u.Name),
		text(wanted))}, Would: "change the roles of " + u.Name,
		Changes: value.NewMap(u.Name, value.NewMap("database", u.Database,
			"roles", value.NewMap("old", value.Strings(have...), "new", value.Strings(wanted...))))}, nil
}

// absent implements mongodb_user.absent.
type absent struct{ server }

func (u *absent) Gone() bool { return true }
func (u *absent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, u)
}
func (u *absent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, u)
}

func (u *absent) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	_, ok, err := u.roles(ctx, h)
	if err != nil || !ok {
		return client.Work{Fine: "there is no user " + u.Name}, err
	}
	return client.Work{Statements: []string{fmt.Sprintf("target.dropUser(%s);", text(u.Name))},
		Changes: value.NewMap(u.Name, "Absent"), Would: "drop the user " + u.Name}, nil
}
