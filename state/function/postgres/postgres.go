// Package postgres implements postgres.*: queries to PostgreSQL servers.
package postgres

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// postgres queries PostgreSQL servers with their command-line client.
type postgres struct{ *function.Facts }

// Functions returns the functions of postgres that templates may call.
func Functions(f *function.Facts) function.Table {
	p := postgres{f}
	return function.Table{
		"postgres.psql_query": function.Of(
			"query, user=None, host=None, port=None, maintenance_db=None, password=None, runas=None, write=False", p.query),
		"postgres.db_exists": function.Of(
			"name, user=None, host=None, port=None, maintenance_db=None, password=None, runas=None", p.exists),
	}.Needing(f.Host, "psql", "postgresql-client")
}

// query returns the rows of a query as mappings by column; no rows if the server does not answer.
func (p postgres) query(ctx context.Context, query, user, server, port, db, password, runas string, _ any) (*value.List,
	error) {
	connection := value.NewMap()
	for name, v := range map[string]string{"user": user, "host": server, "port": port, "maintenance_db": db,
		"pass": password} {
		if v != "" {
			connection.Set(name, v)
		}
	}
	get := func(name string) string { return p.ConnectionSetting(connection, "postgres.", name) }
	argv := []string{"psql", "--no-align", "--no-readline", "--no-psqlrc", "--no-password"}
	for _, name := range []string{"user", "host", "port"} {
		if v := get(name); v != "" {
			argv = append(argv, map[string]string{"user": "--username", "host": "--host", "port": "--port"}[name], v)
		}
	}
	if db = get("maintenance_db"); db == "" {
		db = "postgres"
	}
	copied := "COPY (" + strings.TrimRight(strings.TrimSpace(query), ";") + ") TO STDOUT WITH CSV HEADER"
	l := host.Line{Argv: append(argv, "--dbname", db, "-v", "datestyle=ISO,MDY", "--quiet", "--file=-"), RunAs: runas,
		Stdin: copied + ";\n"}
	if at := get("host"); runas == "" && (at == "" || strings.HasPrefix(at, "/")) {
		l.RunAs = "postgres"
	}
	if password = get("pass"); password != "" {
		l.Env = []string{"PGPASSWORD=" + password}
	}
	out, err := p.Output(ctx, l)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		p.WriteLog("error", fmt.Sprintf("psql ended with code %d: %s", out.Code, function.LastLine(out.Stderr)))
		return value.NewList(), nil
	}
	return rows(out.Stdout)
}

// rows parses a table whose first line has the names of the columns.
func rows(text string) (*value.List, error) {
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading what psql printed: %w", err)
	}
	list := value.NewList()
	for i, row := range all {
		if i == 0 {
			continue
		}
		m := value.NewMap()
		for column, v := range row {
			m.Set(all[0][column], v)
		}
		list.Append(m)
	}
	return list, nil
}

func (p postgres) exists(ctx context.Context, name, user, server, port, db, password, runas string) (bool, error) {
	statement := "SELECT datname FROM pg_database WHERE datname = '" + strings.ReplaceAll(name, "'", "''") + "'"
	found, err := p.query(ctx, statement, user, server, port, db, password, runas, nil)
	return err == nil && found.Len() > 0, err
}
