package database

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

var (
	creates = regexp.MustCompile(`createUser\(\{user: ("[^"]*"), pwd: ("[^"]*"), roles: (\[.*\])\}\)`)
	updates = regexp.MustCompile(`updateUser\(("[^"]*"), \{roles: (\[.*\])\}\)`)
	drops   = regexp.MustCompile(`dropUser\(("[^"]*")\)`)
)

// mongosh imitates the client: /users has the users and their roles.
func mongosh(t *testing.T, h *statetest.Host) {
	read := func() map[string][]string {
		users := map[string][]string{}
		data, _ := h.Files.ReadFile("/users") // none without the file
		_ = json.Unmarshal(data, &users)
		return users
	}
	write := func(users map[string][]string) {
		data, _ := json.Marshal(users)
		h.Build(t, statetest.Tree{"/users": statetest.File(string(data))})
	}
	h.Provide(t, map[string]statetest.Program{"mongosh": func(args []string, c host.Command) (string, error) {
		if line := strings.Join(args, " "); strings.Contains(line, "s3cret") {
			t.Errorf("a password stands on the command line: %s", line)
		}
		users, list := read(), []string{}
		if _, refused := users["refused"]; refused {
			return "", errors.New("MongoNetworkError: connect ECONNREFUSED 127.0.0.1:27017")
		}
		name := ""
		switch {
		case creates.MatchString(c.Stdin):
			m := creates.FindStringSubmatch(c.Stdin)
			_, _ = json.Unmarshal([]byte(m[1]), &name), json.Unmarshal([]byte(m[3]), &list)
			if name == "weak" {
				return "", errors.New("the password " + m[2] + " is too weak")
			}
			users[name] = list
			write(users)
		case updates.MatchString(c.Stdin):
			m := updates.FindStringSubmatch(c.Stdin)
			_, _ = json.Unmarshal([]byte(m[1]), &name), json.Unmarshal([]byte(m[2]), &list)
			users[name] = list
			write(users)
		case drops.MatchString(c.Stdin):
			_ = json.Unmarshal([]byte(drops.FindStringSubmatch(c.Stdin)[1]), &name)
			delete(users, name)
			write(users)
		default:
			for user, roles := range users {
				if strings.Contains(c.Stdin, fmt.Sprintf("getUser(%q)", user)) {
					var out []map[string]string
					for _, r := range roles {
						out = append(out, map[string]string{"role": r, "db": "shop"})
					}
					data, _ := json.Marshal(map[string]any{"user": user, "roles": out})
					return "warning: something\ncorpus-answer:" + string(data) + "\n", nil
				}
			}
			return "corpus-answer:null\n", nil
		}
		return "", nil
	}})
}

func TestMongo(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "mongodb_user",
		Functions: func(*statetest.Host) module.Table { return Tables(nil)["mongodb_user"] },
		Prepare:   mongosh,
		Cases:     statetest.Load(t, "../../../testdata/modules/mongodb_user.yaml"),
	})
}

// TestMySQLSecrets holds that passwords stand on no command line and in no error.
func TestMySQLSecrets(t *testing.T) {
	client := func(args []string, c host.Command) (string, error) {
		if line := strings.Join(args, " "); strings.Contains(line, "s3cret") || strings.Contains(line, "adm1n") {
			t.Errorf("a password stands on the command line: %s", line)
		}
		if !strings.Contains(strings.Join(c.Env, "\n"), "MYSQL_PWD=adm1n") {
			t.Error("the client is not given its password")
		}
		switch {
		case strings.Contains(c.Stdin, "VERSION()"):
			return "10.11.6-MariaDB\n", nil
		case strings.Contains(c.Stdin, "CREATE USER"):
			if strings.Contains(c.Stdin, "s3cret") {
				t.Errorf("the server is told the password: %s", c.Stdin)
			}
			return "", statetest.Exit{Code: 1, Text: "ERROR 1064: check the manual for the right syntax to use near " + c.Stdin + " adm1n"}
		}
		return "", nil
	}
	r, h, d, err := asked(t, "mysql_user", "present", value.NewMap("name", "bob", "password", "s3cret", "connection_user", "root", "connection_pass", "adm1n"), "mysql", client)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Apply(context.Background(), h.Host, d)
	if err == nil || strings.Contains(err.Error(), "adm1n") || strings.Contains(err.Error(), nativeHash("s3cret")) {
		t.Errorf("the error is %v", err)
	}
}

// TestNativeHash is the example of MySQL's documentation: PASSWORD('password').
func TestNativeHash(t *testing.T) {
	if got, want := nativeHash("password"), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"; got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
}

func TestPrivileges(t *testing.T) {
	g := myGrant{Grant: "select (a, b), Insert,  ALL  PRIVILEGES ,insert", User: "u", Database: "my_db.*", Escape: true}
	got, err := g.privileges()
	if want := []string{"ALL", "INSERT", "SELECT (A, B)"}; err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("privileges are %q, %v, want %q", got, err, want)
	}
	for database, want := range map[string]string{"my_db.*": "`my\\_db`.*", "*.*": "*.*", "`a`.`b`": "`a`.`b`", `a\_b.*`: "`a\\_b`.*"} {
		g.Database = database
		if got, err := g.place(); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", database, got, err, want)
		}
	}
}

// TestNoClient says which package to install.
func TestNoClient(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	for state, brings := range map[string]string{"mysql_database": "default-mysql-client", "postgres_database": "postgresql-client", "mongodb_user": "mongodb-mongosh"} {
		h := statetest.NewHost(t)
		h.Commands = statetest.Commands(func(host.Command) (host.Output, error) { return host.Output{}, errors.New("nothing runs") })
		r := Tables(nil)[state]["present"]()
		_, _ = module.Decode(r, module.Call{Arguments: value.NewMap("name", "x", "passwd", "y")})
		d, err := r.Check(context.Background(), h.Host)
		if err != nil || !d.Unknown {
			t.Errorf("%s: a check gives %+v, %v", state, d, err)
		}
		_, err = r.Apply(context.Background(), h.Host, d)
		if err == nil || !strings.Contains(diag.HintOf(err), brings) {
			t.Errorf("%s: a run gives %v (hint: %s)", state, err, diag.HintOf(err))
		}
	}
}
