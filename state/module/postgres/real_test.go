//go:build integration

package postgres

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// postgresServer starts a server and returns the directory of its socket.
func postgresServer(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("this machine has no PostgreSQL server to test with")
	}
	bin, dir := filepath.Dir(slices.Max(found)), clienttest.Private(t, "postgres")
	run := func(name string, args ...string) {
		cmd := clienttest.As(t, "postgres", exec.Command(filepath.Join(bin, name), args...))
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	data := filepath.Join(dir, "data")
	run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", data)
	run("pg_ctl", "--pgdata="+data, "--wait", "--log="+filepath.Join(dir, "log"),
		"--options=-c listen_addresses= -c fsync=off -k "+dir, "start")
	t.Cleanup(func() {
		cmd := clienttest.As(t, "postgres", exec.Command(filepath.Join(bin, "pg_ctl"), "--pgdata="+data,
			"--mode=immediate", "stop"))
		cmd.Dir = dir
		_ = cmd.Run()
	})
	return dir
}

func TestRealPostgres(t *testing.T) {
	socket := postgresServer(t)
	psql := clienttest.Real("psql", "--host="+socket, "--username=postgres")
	prepared := func(sql string, c statetest.Case) statetest.Case {
		c.Setup = func(t *testing.T, h *statetest.Host) {
			if _, err := psql([]string{"--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname=postgres"},
				host.Command{Stdin: sql}); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		return c
	}
	space := clienttest.Private(t, "postgres")
	clienttest.RunStates(t, Tables(nil), map[string]statetest.Program{"psql": psql}, map[string][]statetest.Case{
		"postgres_database": {
			clienttest.Case("present", clienttest.Did("d1", "Present"), "name", "d1", "owner", "postgres", "encoding",
				"utf-8", "template", "template0"),
			prepared("CREATE DATABASE d2; CREATE ROLE o2",
				clienttest.Case("present", clienttest.Did("d2",
					value.NewMap("owner", value.NewMap("old", "postgres", "new", "o2"))), "name", "d2", "owner", "o2")),
			prepared("CREATE DATABASE d4", clienttest.Case("present",
				clienttest.Fails("encoding of database d4 is UTF8 and cannot become LATIN1"), "name", "d4", "encoding", "LATIN1")),
			prepared("CREATE DATABASE d3", clienttest.Case("absent", clienttest.Did("d3", "Absent"), "name", "d3")),
			clienttest.Case("absent", clienttest.Did(), "name", "none"),
			clienttest.Case("present", clienttest.Fails("does not exist"), "name", "d5", "owner", "nobody-there"),
		},
		"postgres_user": {
			clienttest.Case("present", clienttest.Did("u1", "Present"), "name", "u1", "password", "s3cret's", "createdb", true,
				"valid_until", "2040-01-01"),
			clienttest.Case("present", clienttest.Did("u9", "Present"), "name", "u9", "password", "s3cret", "encrypted", "md5"),
			prepared("CREATE ROLE u2 LOGIN SUPERUSER PASSWORD 'old'; CREATE ROLE g2",
				clienttest.Case("present", clienttest.Did("u2",
					value.NewMap("createdb", true, "superuser", false, "password", true, "groups", value.Strings("g2"))),
					"name", "u2", "createdb", true, "superuser", false, "password", "new", "groups", "g2")),
			prepared("CREATE ROLE u3", clienttest.Case("absent", clienttest.Did("u3", "Absent"), "name", "u3")),
		},
		"postgres_group": {
			clienttest.Case("present", clienttest.Did("g1", "Present"), "name", "g1"),
			prepared("CREATE ROLE g3", clienttest.Case("absent", clienttest.Did("g3", "Absent"), "name", "g3")),
		},
		"postgres_schema": {
			prepared("CREATE DATABASE s1", clienttest.Case("present", clienttest.Did("shop", "Present"), "name", "shop",
				"dbname", "s1", "owner", "postgres")),
			prepared("CREATE SCHEMA s2", clienttest.Case("absent", clienttest.Did("s2", "Absent"), "name",
				"s2", "dbname", "postgres")),
		},
		"postgres_extension": {
			clienttest.Case("present", clienttest.Did(), "name", "plpgsql"),
			clienttest.Case("absent", clienttest.Did(), "name", "none"),
		},
		"postgres_language": {
			clienttest.Case("present", clienttest.Did(), "name", "sql"),
			clienttest.Case("absent", clienttest.Did(), "name", "none"),
		},
		"postgres_tablespace": {
			clienttest.Case("present", clienttest.Did("t1", "Present"), "name", "t1", "directory", space, "owner", "postgres"),
			clienttest.Case("absent", clienttest.Did(), "name", "none"),
		},
		"postgres_privileges": {
			prepared("CREATE ROLE p1; CREATE TABLE tab1 (a int)", clienttest.Case("present", clienttest.Did("p1", "Present"),
				"name", "p1", "object_name", "tab1", "object_type", "table", "privileges", value.Strings("SELECT", "INSERT"))),
			prepared("CREATE ROLE p2; CREATE DATABASE pd2", clienttest.Case("present", clienttest.Did("p2", "Present"),
				"name", "p2", "object_name", "pd2", "object_type", "database", "privileges", "ALL", "grant_option", true)),
			prepared("CREATE ROLE p3; CREATE ROLE pg3", clienttest.Case("present", clienttest.Did("p3", "Present"), "name",
				"p3", "object_name", "pg3", "object_type", "group")),
			prepared("CREATE ROLE p4; CREATE SCHEMA ps4; GRANT USAGE ON SCHEMA ps4 TO p4",
				clienttest.Case("absent", clienttest.Did("p4", "Absent"), "name", "p4", "object_name", "ps4", "object_type",
					"schema", "privileges", "USAGE")),
			clienttest.Case("present", clienttest.Fails("has no privilege SELEC"), "name", "p1", "object_name", "tab1",
				"object_type", "table", "privileges", "SELEC"),
		},
	})
}
