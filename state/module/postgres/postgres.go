// Package postgres implements the postgres_ states for databases, roles, schemas and other objects of a
// PostgreSQL server, with the client psql.
package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
)

// Tables returns the functions by state.
func Tables(settings client.Settings) module.Registry {
	c := func() server { return server{settings: settings} }
	return module.Registry{
		"postgres_database": {
			"present": func() module.Resource { return &database{server: c()} },
			"absent":  func() module.Resource { return &absent{server: c(), kind: databases()} },
		},
		"postgres_user": {
			"present": func() module.Resource { return &role{server: c(), user: true} },
			"absent":  func() module.Resource { return &absent{server: c(), kind: roles()} },
		},
		"postgres_group": {
			"present": func() module.Resource { return &role{server: c()} },
			"absent":  func() module.Resource { return &absent{server: c(), kind: roles()} },
		},
		"postgres_extension": {
			"present": func() module.Resource { return &extension{server: c()} },
			"absent":  func() module.Resource { return &absent{server: c(), kind: extensions()} },
		},
		"postgres_language": {
			"present": func() module.Resource { return &language{server: c()} },
			"absent":  func() module.Resource { return &absent{server: c(), kind: languages()} },
		},
		"postgres_schema": {
			"present": func() module.Resource { return &schema{server: c()} },
			"absent":  func() module.Resource { return &schemaAbsent{server: c()} },
		},
		"postgres_tablespace": {
			"present": func() module.Resource { return &tablespace{server: c()} },
			"absent":  func() module.Resource { return &absent{server: c(), kind: tablespaces()} },
		},
		"postgres_privileges": {
			"present": func() module.Resource { return &privileges{server: c(), Prepend: "public"} },
			"absent":  func() module.Resource { return &privileges{server: c(), Prepend: "public", revoke: true} },
		},
	}
}

// server holds the arguments for access to a PostgreSQL server.
type server struct {
	Name          string `sls:"name"`
	User          string `sls:"user"` // the system user who runs psql
	MaintenanceDB string `sls:"maintenance_db"`
	DBUser        string `sls:"db_user"`
	DBPassword    string `sls:"db_password"`
	DBHost        string `sls:"db_host"`
	DBPort        string `sls:"db_port"`

	settings client.Settings
}

func (p *server) setting(given, name string) string {
	if given != "" || p.settings == nil {
		return given
	}
	return p.settings("postgres." + name)
}

// psql returns the client program and the arguments to log in to a database. For a server on the host it runs
// as the user postgres, whom the server trusts by default.
func (p *server) psql(db string) (program.Program, []string) {
	at := p.setting(p.DBHost, "host")
	program := program.Program{Name: "psql", Package: "postgresql-client", RunAs: p.User,
		Dir: "/", Limit: 10 * time.Minute, Env: []string{"PGCONNECT_TIMEOUT=20"}}
	if program.RunAs == "" && (at == "" || strings.HasPrefix(at, "/")) {
		program.RunAs = "postgres"
	}
	password := p.setting(p.DBPassword, "pass")
	if password != "" {
		program.Env = append(program.Env, "PGPASSWORD="+password)
	}
	program.Hide = client.Hiding(password)
	args := []string{"--no-psqlrc", "--no-password", "--quiet", "--no-align", "--tuples-only", "--field-separator=\x1f",
		"--record-separator=\x1e",
		"--set=ON_ERROR_STOP=1", "--file=-"}
	for _, f := range []struct{ option, v string }{{"--username=", p.setting(p.DBUser, "user")}, {"--host=", at},
		{"--port=", p.setting(p.DBPort, "port")}} {
		if f.v != "" {
			args = append(args, f.option+f.v)
		}
	}
	if db == "" {
		db = p.setting(p.MaintenanceDB, "maintenance_db")
	}
	if db == "" {
		db = "postgres"
	}
	return program, append(args, "--dbname="+db)
}

func (p *server) Awaits(h *host.Host) (string, error) {
	program, _ := p.psql("")
	if ok, err := program.Ready(h); err != nil || !ok {
		return program.Name, err
	}
	if program.RunAs == "" {
		return "", nil
	}
	if _, ok, err := h.Accounts.User(program.RunAs); err != nil || !ok {
		return "user " + program.RunAs, err
	}
	return "", nil
}

func (p *server) Missing(what string) error {
	program, _ := p.psql("")
	return client.Missing(program, what)
}

func (p *server) Gone() bool { return false }

// rows runs a query and returns its rows.
func (p *server) rows(ctx context.Context, h *host.Host, db, query string) ([][]string, error) {
	program, args := p.psql(db)
	program.Stdin = "SET client_min_messages = error;\n" + query + ";\n"
	out, err := program.Ask(ctx, h, args...)
	if err != nil {
		return nil, p.explain(err)
	}
	var rows [][]string
	for record := range strings.SplitSeq(strings.TrimRight(out, "\x1e\n"), "\x1e") {
		if record = strings.TrimPrefix(record, "\n"); record != "" {
			rows = append(rows, strings.Split(record, "\x1f"))
		}
	}
	return rows, nil
}

// explain adds ErrNoServer to the error of a server that does not respond.
func (p *server) explain(err error) error {
	var failed *program.Error
	if errors.As(err, &failed) && failed.Code == 2 && !strings.Contains(failed.Stderr, "FATAL") {
		return client.NoServer(err, "PostgreSQL")
	}
	return err
}

func (p *server) Run(ctx context.Context, h *host.Host, statements []string) error {
	return p.runIn(ctx, h, "", statements)
}

func (p *server) runIn(ctx context.Context, h *host.Host, db string, statements []string) error {
	program, args := p.psql(db)
	hide := program.Hide
	// The client prints the statement that failed, which may contain a password.
	program.Hide = func(text string) string {
		var kept []string
		for line := range strings.Lines(hide(text)) {
			if !strings.HasPrefix(line, "LINE ") && !strings.HasPrefix(line, "STATEMENT") {
				kept = append(kept, strings.TrimRight(line, "\n"))
			}
		}
		return strings.Join(kept, "\n")
	}
	program.Stdin = "SET log_statement = 'none';\n" + strings.Join(statements, ";\n") + ";\n"
	if !p.super(ctx, h) {
		program.Stdin = strings.Join(statements, ";\n") + ";\n"
	}
	_, err := program.Do(ctx, h, args...)
	if err != nil {
		return p.explain(err)
	}
	return nil
}

// super reports whether the login is a superuser, who may exclude statements from the log of the server.
func (p *server) super(ctx context.Context, h *host.Host) bool {
	rows, err := p.rows(ctx, h, "", "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
	return err == nil && len(rows) == 1 && rows[0][0] == "t"
}

// one returns the first column of the first row of a query; ok is false if there is no row.
func (p *server) one(ctx context.Context, h *host.Host, db, query string) (string, bool, error) {
	rows, err := p.rows(ctx, h, db, query)
	if err != nil || len(rows) == 0 {
		return "", false, err
	}
	return rows[0][0], true, nil
}

// ident quotes an identifier.
func ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
