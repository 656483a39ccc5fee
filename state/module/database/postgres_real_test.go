//go:build integration

package database

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// as runs a command as an ordinary user, which servers insist on.
func as(t *testing.T, name string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		return cmd
	}
	u, err := user.Lookup(name)
	if err != nil {
		t.Skipf("this machine has no user %s to run a server as", name)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return cmd
}

// private is a directory that such a user may use.
func private(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if u, err := user.Lookup(name); err == nil && os.Geteuid() == 0 {
		uid, _ := strconv.Atoi(u.Uid)
		if err := os.Chown(dir, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// postgresServer starts a server and gives the directory of its socket.
func postgresServer(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("this machine has no PostgreSQL server to test with")
	}
	bin, dir := filepath.Dir(slices.Max(found)), private(t, "postgres")
	run := func(name string, args ...string) {
		cmd := as(t, "postgres", exec.Command(filepath.Join(bin, name), args...))
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	data := filepath.Join(dir, "data")
	run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", data)
	run("pg_ctl", "--pgdata="+data, "--wait", "--log="+filepath.Join(dir, "log"), "--options=-c listen_addresses= -c fsync=off -k "+dir, "start")
	t.Cleanup(func() {
		cmd := as(t, "postgres", exec.Command(filepath.Join(bin, "pg_ctl"), "--pgdata="+data, "--mode=immediate", "stop"))
		cmd.Dir = dir
		_ = cmd.Run()
	})
	return dir
}

// real runs a client of the machine with arguments before those it is given.
func real(name string, before ...string) statetest.Program {
	return func(args []string, c host.Command) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, append(before, args...)...)
		cmd.Env, cmd.Stdin = append(slices.Clone(c.Env), "PATH="+os.Getenv("PATH")), strings.NewReader(c.Stdin)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return string(out), statetest.Exit{Code: cmd.ProcessState.ExitCode(), Text: stderr.String()}
		}
		return string(out), nil
	}
}

// conformance runs cases of several states against one server.
func conformance(t *testing.T, programs map[string]statetest.Program, cases map[string][]statetest.Case) {
	t.Helper()
	for state, list := range cases {
		t.Run(state, func(t *testing.T) {
			statetest.Run(t, statetest.Suite{
				State:     state,
				Functions: func(*statetest.Host) module.Table { return Tables(nil)[state] },
				Prepare:   func(t *testing.T, h *statetest.Host) { h.Provide(t, programs) },
				Cases:     list,
			})
		})
	}
}

// one is a case that is run as the user who runs the test.
func one(function string, first *statetest.Want, items ...any) statetest.Case {
	return statetest.Case{Name: function + " " + value.Repr(value.NewList(items...)), Function: function, Arguments: value.NewMap(append(items, "user", "root")...), First: first, Second: again(first)}
}

func again(first *statetest.Want) *statetest.Want {
	if first.Result == true {
		return &statetest.Want{Result: true, Changes: value.NewMap()}
	}
	return nil
}

func did(items ...any) *statetest.Want {
	return &statetest.Want{Result: true, Changes: value.NewMap(items...)}
}

func fails(comment string) *statetest.Want { return &statetest.Want{Result: false, Comment: comment} }

func TestRealPostgres(t *testing.T) {
	socket := postgresServer(t)
	psql := real("psql", "--host="+socket, "--username=postgres")
	prepared := func(sql string, c statetest.Case) statetest.Case {
		c.Setup = func(t *testing.T, h *statetest.Host) {
			if _, err := psql([]string{"--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname=postgres"}, host.Command{Stdin: sql}); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		return c
	}
	space := private(t, "postgres")
	conformance(t, map[string]statetest.Program{"psql": psql}, map[string][]statetest.Case{
		"postgres_database": {
			one("present", did("d1", "Present"), "name", "d1", "owner", "postgres", "encoding", "utf-8", "template", "template0"),
			prepared("CREATE DATABASE d2; CREATE ROLE o2", one("present", did("d2", value.NewMap("owner", value.NewMap("old", "postgres", "new", "o2"))), "name", "d2", "owner", "o2")),
			prepared("CREATE DATABASE d4", one("present", fails("encoding of database d4 is UTF8 and cannot become LATIN1"), "name", "d4", "encoding", "LATIN1")),
			prepared("CREATE DATABASE d3", one("absent", did("d3", "Absent"), "name", "d3")),
			one("absent", did(), "name", "none"),
			one("present", fails("does not exist"), "name", "d5", "owner", "nobody-there"),
		},
		"postgres_user": {
			one("present", did("u1", "Present"), "name", "u1", "password", "s3cret's", "createdb", true, "valid_until", "2040-01-01"),
			one("present", did("u9", "Present"), "name", "u9", "password", "s3cret", "encrypted", "md5"),
			prepared("CREATE ROLE u2 LOGIN SUPERUSER PASSWORD 'old'; CREATE ROLE g2",
				one("present", did("u2", value.NewMap("createdb", true, "superuser", false, "password", true, "groups", listOf("g2"))),
					"name", "u2", "createdb", true, "superuser", false, "password", "new", "groups", "g2")),
			prepared("CREATE ROLE u3", one("absent", did("u3", "Absent"), "name", "u3")),
		},
		"postgres_group": {
			one("present", did("g1", "Present"), "name", "g1"),
			prepared("CREATE ROLE g3", one("absent", did("g3", "Absent"), "name", "g3")),
		},
		"postgres_schema": {
			prepared("CREATE DATABASE s1", one("present", did("shop", "Present"), "name", "shop", "dbname", "s1", "owner", "postgres")),
			prepared("CREATE SCHEMA s2", one("absent", did("s2", "Absent"), "name", "s2", "dbname", "postgres")),
		},
		"postgres_extension": {
			one("present", did(), "name", "plpgsql"),
			one("absent", did(), "name", "none"),
		},
		"postgres_language": {
			one("present", did(), "name", "sql"),
			one("absent", did(), "name", "none"),
		},
		"postgres_tablespace": {
			one("present", did("t1", "Present"), "name", "t1", "directory", space, "owner", "postgres"),
			one("absent", did(), "name", "none"),
		},
		"postgres_privileges": {
			prepared("CREATE ROLE p1; CREATE TABLE tab1 (a int)", one("present", did("p1", "Present"), "name", "p1", "object_name", "tab1", "object_type", "table", "privileges", listOf("SELECT", "INSERT"))),
			prepared("CREATE ROLE p2; CREATE DATABASE pd2", one("present", did("p2", "Present"), "name", "p2", "object_name", "pd2", "object_type", "database", "privileges", "ALL", "grant_option", true)),
			prepared("CREATE ROLE p3; CREATE ROLE pg3", one("present", did("p3", "Present"), "name", "p3", "object_name", "pg3", "object_type", "group")),
			prepared("CREATE ROLE p4; CREATE SCHEMA ps4; GRANT USAGE ON SCHEMA ps4 TO p4", one("absent", did("p4", "Absent"), "name", "p4", "object_name", "ps4", "object_type", "schema", "privileges", "USAGE")),
			one("present", fails("has no privilege SELEC"), "name", "p1", "object_name", "tab1", "object_type", "table", "privileges", "SELEC"),
		},
	})
}

func listOf(items ...string) *value.List { return value.Strings(items...) }
