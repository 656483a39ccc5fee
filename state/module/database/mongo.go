package database

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
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func mongoTable() module.Table {
	return module.Table{
		"present": func() module.Resource {
			return &mongoUser{mongo: mongo{Host: "localhost", Port: 27017, Database: "admin"}}
		},
		"absent": func() module.Resource {
			return &mongoAbsent{mongo: mongo{Host: "localhost", Port: 27017, Database: "admin"}}
		},
	}
}

// mongo is how a MongoDB server is reached. What it is asked is a script on standard input, so that
// no password stands on a command line.
type mongo struct {
	Name     string `sls:"name"`
	User     string `sls:"user"`
	Password string `sls:"password"`
	Host     string `sls:"host"`
	Port     int    `sls:"port"`
	Database string `sls:"database"`
	AuthDB   string `sls:"authdb"`
}

func (m *mongo) client(h *host.Host) host.Program {
	p := host.Program{Name: "mongosh", Package: "mongodb-mongosh", Dir: "/", Limit: time.Minute, Hide: hiding(m.Password)}
	if _, ok := h.Which("mongosh"); !ok {
		if _, ok := h.Which("mongo"); ok {
			p.Name, p.Package = "mongo", "mongodb-clients"
		}
	}
	return p
}

func (m *mongo) awaits(h *host.Host) (string, error) {
	p := m.client(h)
	if ok, err := p.Ready(h); err != nil || !ok {
		return p.Name, err
	}
	return "", nil
}

func (m *mongo) missing(what string) error {
	return missingProgram(host.Program{Name: what, Package: "mongodb-mongosh"}, what)
}

func (m *mongo) gone() bool { return false }

// text is a text as JavaScript takes it.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "null" // no text and no list of texts fails
	}
	return string(data)
}

// script is what is run: the login, and then the statements on the database of the state.
func (m *mongo) script(statements ...string) string {
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

func (m *mongo) call(ctx context.Context, h *host.Host, quiet bool, statements ...string) (string, error) {
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
	var failed *host.ProgramError
	if errors.As(err, &failed) && (strings.Contains(failed.Stderr+failed.Stdout, "ECONNREFUSED") || strings.Contains(failed.Stderr+failed.Stdout, "onnection refused")) {
		return out, noServer(err, "MongoDB")
	}
	return out, err
}

func (m *mongo) run(ctx context.Context, h *host.Host, statements []string) error {
	_, err := m.call(ctx, h, false, statements...)
	return err
}

// mark stands before the answer, since a client may print other things.
const mark = "corpus-answer:"

// roles are those that a user has, as role@database; ok is false if there is no such user.
func (m *mongo) roles(ctx context.Context, h *host.Host) (roles []string, ok bool, err error) {
	out, err := m.call(ctx, h, true, fmt.Sprintf("print(%s + JSON.stringify(target.getUser(%s)));", text(mark), text(m.Name)))
	if err != nil {
		return nil, false, err
	}
	_, answer, found := strings.Cut(out, mark)
	answer, _, _ = strings.Cut(answer, "\n")
	var user *struct {
		Roles []struct{ Role, DB string }
	}
	if err := json.Unmarshal([]byte(answer), &user); !found || err != nil {
		return nil, false, diag.WithHint(errors.New("MongoDB gives no answer that can be read"), "look whether user, password and authdb are right")
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

// mongoUser is mongodb_user.present.
type mongoUser struct {
	mongo
	Passwd string `sls:"passwd,required"`
	Roles  any    `sls:"roles"`
}

func (u *mongoUser) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, u)
}
func (u *mongoUser) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, u)
}

func (u *mongoUser) run(ctx context.Context, h *host.Host, statements []string) error {
	_, err := u.call(ctx, h, false, statements...)
	var failed *host.ProgramError
	if errors.As(err, &failed) {
		hide := hiding(u.Passwd)
		failed.Stdout, failed.Stderr = hide(failed.Stdout), hide(failed.Stderr)
	}
	return err
}

func (u *mongoUser) work(ctx context.Context, h *host.Host) (work, error) {
	wanted := list(u.Roles)
	have, ok, err := u.roles(ctx, h)
	if err != nil {
		return work{}, err
	}
	if wanted == nil {
		wanted = []string{}
	}
	if !ok {
		return created("user", u.Name, fmt.Sprintf("target.createUser({user: %s, pwd: %s, roles: %s});", text(u.Name), text(u.Passwd), text(wanted))), nil
	}
	before, after := slices.Sorted(slices.Values(have)), slices.Sorted(slices.Values(wanted))
	if slices.Equal(before, after) {
		return work{fine: "the user " + u.Name + " is as declared"}, nil
	}
	return work{statements: []string{fmt.Sprintf("target.updateUser(%s, {roles: %s});", text(u.Name), text(wanted))}, would: "change the roles of " + u.Name,
		changes: value.NewMap(u.Name, value.NewMap("database", u.Database, "roles", value.NewMap("old", value.Strings(have...), "new", value.Strings(wanted...))))}, nil
}

// mongoAbsent is mongodb_user.absent.
type mongoAbsent struct{ mongo }

func (u *mongoAbsent) gone() bool { return true }
func (u *mongoAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, u)
}
func (u *mongoAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, u)
}

func (u *mongoAbsent) work(ctx context.Context, h *host.Host) (work, error) {
	_, ok, err := u.roles(ctx, h)
	if err != nil || !ok {
		return work{fine: "there is no user " + u.Name}, err
	}
	return work{statements: []string{fmt.Sprintf("target.dropUser(%s);", text(u.Name))}, changes: value.NewMap(u.Name, "Absent"), would: "drop the user " + u.Name}, nil
}
