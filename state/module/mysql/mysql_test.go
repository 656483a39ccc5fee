package mysql

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestMySQLSecrets checks that passwords are on no command line and in no error.
func TestMySQLSecrets(t *testing.T) {
	client := func(args []string, c host.Command) (string, error) {
		if line := strings.Join(args, " "); strings.Contains(line, "s3cret") || strings.Contains(line, "adm1n") {
			t.Errorf("a password is on the command line: %s", line)
		}
		if !strings.Contains(strings.Join(c.Env, "\n"), "MYSQL_PWD=adm1n") {
			t.Error("the client does not get its password")
		}
		switch {
		case strings.Contains(c.Stdin, "VERSION()"):
			return "10.11.6-MariaDB\n", nil
		case strings.Contains(c.Stdin, "CREATE USER"):
			if strings.Contains(c.Stdin, "s3cret") {
				t.Errorf("the server gets the password: %s", c.Stdin)
			}
			return "", statetest.Exit{Code: 1, Text: "ERROR 1064: check the manual for the right syntax to use near " +
				c.Stdin + " adm1n"}
		}
		return "", nil
	}
	h := statetest.NewHost(t)
	h.Provide(t, map[string]statetest.Program{"mysql": client})
	r, d := hosttest.Look(t, h.Host, Tables(nil)["mysql_user"],
		"present", value.NewMap("name", "bob", "password", "s3cret", "connection_user", "root", "connection_pass", "adm1n"))
	_, err := r.Apply(context.Background(), h.Host, d)
	if err == nil || strings.Contains(err.Error(), "adm1n") || strings.Contains(err.Error(), nativeHash("s3cret")) {
		t.Errorf("the error is %v", err)
	}
}

// TestNativeHash compares with the example in MySQL's documentation: PASSWORD('password').
func TestNativeHash(t *testing.T) {
	if got, want := nativeHash("password"), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"; got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
}

func TestPrivileges(t *testing.T) {
	g := grant{Grant: "select (a, b), Insert,  ALL  PRIVILEGES ,insert", User: "u", Database: "my_db.*", Escape: true}
	got, err := g.privileges()
	if want := []string{"ALL", "INSERT", "SELECT (A, B)"}; err != nil ||
		strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("privileges are %q, %v, want %q", got, err, want)
	}
	for database, want := range map[string]string{"my_db.*": "`my\\_db`.*", "*.*": "*.*", "`a`.`b`": "`a`.`b`",
		`a\_b.*`: "`a\\_b`.*"} {
		g.Database = database
		if got, err := g.place(); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", database, got, err, want)
		}
	}
}

func TestWithoutProgram(t *testing.T) {
	clienttest.WithoutClient(t, Tables(nil)["mysql_database"], "default-mysql-client")
}
