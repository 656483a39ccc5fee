//go:build integration

package mysql

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mysqlServer starts a server and returns its socket.
func mysqlServer(t *testing.T) string {
	t.Helper()
	server, err := exec.LookPath("mariadbd")
	install, errInstall := exec.LookPath("mariadb-install-db")
	if err != nil || errInstall != nil {
		t.Skip("this machine has no MariaDB server to test with")
	}
	dir := clienttest.Private(t, "mysql")
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "socket")
	cmd := clienttest.As(t, "mysql", exec.Command(install, "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("installing a server: %v: %s", err, out)
	}
	run := clienttest.As(t, "mysql", exec.Command(server, "--no-defaults", "--datadir="+data, "--socket="+socket,
		"--skip-networking", "--pid-file="+filepath.Join(dir, "pid"), "--innodb-flush-log-at-trx-commit=0"))
	run.Dir = dir
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
	for range 300 {
		if exec.Command("mariadb", "--no-defaults", "--socket="+socket, "--user=root", "--execute=SELECT 1").Run() == nil {
			return socket
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the server does not answer")
	return ""
}

func TestRealMySQL(t *testing.T) {
	socket := mysqlServer(t)
	mariadb := clienttest.Real("mariadb", "--no-defaults", "--socket="+socket)
	my := func(function string, first *statetest.Want, items ...any) statetest.Case {
		c := clienttest.Case(function, first, items...)
		c.Arguments.Delete("user")
		for i := 0; i < len(items); i += 2 {
			c.Arguments.Set(items[i].(string), items[i+1])
		}
		c.Arguments.Set("connection_user", "root")
		return c
	}
	prepared := func(sql string, c statetest.Case) statetest.Case {
		c.Setup = func(t *testing.T, _ *statetest.Host) {
			if _, err := mariadb([]string{"--user=root"}, host.Command{Stdin: sql}); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		return c
	}
	secret := func(c statetest.Case) statetest.Case { c.Secrets = []string{"s3cret"}; return c }
	query := my("run", clienttest.Did("query", "Executed"), "name", "seed", "database", "mysql", "query", "SELECT 1")
	query.Second = nil
	file := my("run_file", clienttest.Did("query", "Executed. Output into /srv/out"), "name", "seed", "database",
		"mysql", "query_file", "/srv/q.sql", "output", "/srv/out", "overwrite", false)
	file.Tree, file.After = statetest.Tree{"/srv/q.sql": statetest.File("SELECT 'a b';")},
		statetest.Tree{"/srv/out": statetest.File("a b\n").With("0600", "", "")}
	clienttest.RunStates(t, Tables(nil), map[string]statetest.Program{"mysql": mariadb}, map[string][]statetest.Case{
		"mysql_database": {
			my("present", clienttest.Did("d1", "Present"), "name", "d1", "character_set", "utf8mb4", "collate", "utf8mb4_bin"),
			prepared("CREATE DATABASE d2 CHARACTER SET latin1",
				my("present", clienttest.Did("d2", value.NewMap("character_set", value.NewMap("old", "latin1", "new", "utf8mb4"))),
					"name", "d2", "character_set", "utf8mb4")),
			my("present", clienttest.Fails("Unknown character set"), "name", "d3", "character_set", "none"),
			prepared("CREATE DATABASE d4", my("absent", clienttest.Did("d4", "Absent"), "name", "d4")),
			my("absent", clienttest.Fails("the server's own"), "name", "mysql"),
		},
		"mysql_user": {
			secret(my("present", clienttest.Did("u1", "Present"), "name", "u1", "password", `s3cret'\`)),
			secret(prepared("CREATE USER u2@localhost IDENTIFIED BY 'old'",
				my("present", clienttest.Did("u2", "Updated"), "name", "u2", "password", "s3cret"))),
			my("present", clienttest.Did("u3", "Present"), "name", "u3", "host", "%", "password_hash", nativeHash("x")),
			my("present", clienttest.Did("u4", "Present"), "name", "u4", "allow_passwordless", true),
			my("present", clienttest.Did("u5", "Present"), "name", "u5", "unix_socket", true),
			my("present", clienttest.Fails("would have no password"), "name", "u6"),
			prepared("CREATE USER u7@localhost", my("absent", clienttest.Did("u7", "Absent"), "name", "u7")),
			my("absent", clienttest.Did(), "name", "none"),
		},
		"mysql_grants": {
			prepared("CREATE USER g1@localhost; CREATE DATABASE my_db", my("present", clienttest.Did("a", "Present"), "name",
				"a", "grant", "select,Insert", "database", "my_db.*", "user", "g1")),
			prepared("CREATE USER g2@localhost", my("present", clienttest.Did("a", "Present"), "name", "a",
				"grant", "all privileges", "database", "*.*", "user", "g2", "grant_option", true)),
			prepared("CREATE USER g3@localhost; CREATE DATABASE g3; GRANT SELECT, DELETE ON g3.* TO g3@localhost",
				my("present", clienttest.Did("a", "Present"), "name", "a", "grant", "select", "database", "g3.*", "user",
					"g3", "revoke_first", true)),
			prepared("CREATE USER g4@localhost; CREATE DATABASE g4; GRANT SELECT ON g4.* TO g4@localhost",
				my("absent", clienttest.Did("a", "Absent"), "name", "a", "grant", "select", "database", "g4.*", "user", "g4")),
			my("present", clienttest.Fails("there is no user"), "name", "a", "grant", "select", "database",
				"x.*", "user", "none"),
			my("present", clienttest.Fails("names no tables"), "name", "a", "grant", "select", "database", "x", "user", "none"),
			my("present", clienttest.Fails("is not a privilege"), "name", "a", "grant", "select;drop", "database",
				"x.*", "user", "none"),
			my("absent", clienttest.Did(), "name", "a", "grant", "select", "database", "x.*", "user", "none"),
		},
		"mysql_query": {query, file},
	})
}
