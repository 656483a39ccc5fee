package function

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// database asks database servers through their own command-line clients.
type database struct{ *Facts }

func databaseTable(f *Facts) Table {
	d := database{f}
	mysql := Table{
		"mysql.db_list":   Of("**connection_args", d.mysqlDatabases),
		"mysql.db_tables": Of("name, **connection_args", d.mysqlTables),
		"mysql.db_exists": Of("name, **connection_args", d.mysqlExists),
	}
	return Table{
		"postgres.psql_query": Of("query, user=None, host=None, port=None, maintenance_db=None, password=None, runas=None, write=False", d.psql),
		"postgres.db_exists":  Of("name, user=None, host=None, port=None, maintenance_db=None, password=None, runas=None", d.psqlExists),
	}.through(f.Host, "psql", "postgresql-client").add(mysql.through(f.Host, "mysql", "default-mysql-client"))
}

// mysql runs a statement. Neither the password nor the statement, which may hold one, stands on a command line.
func (d database) mysql(ctx context.Context, statement string, connection *value.Map) ([]string, error) {
	argv := []string{"mysql", "--batch", "--skip-column-names"}
	for option, names := range map[string][]string{"--user": {"connection_user", "user"}, "--host": {"connection_host", "host"},
		"--port": {"connection_port", "port"}, "--socket": {"connection_unix_socket", "unix_socket"}} {
		if v := d.setting(connection, "mysql.", names...); v != "" {
			argv = append(argv, option+"="+v)
		}
	}
	if file := d.setting(connection, "mysql.", "connection_default_file", "default_file"); file != "" {
		argv = append([]string{argv[0], "--defaults-file=" + file}, argv[1:]...)
	}
	l := host.Line{Argv: argv, Stdin: statement + ";\n"}
	if password := d.setting(connection, "mysql.", "connection_pass", "pass"); password != "" {
		l.Env = []string{"MYSQL_PWD=" + password}
	}
	out, err := d.ask(ctx, l)
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("mysql ended with code %d: %s", out.Code, lastLine(out.Stderr))
	}
	return value.SplitLines(out.Stdout, false), err
}

// setting is a connection argument, or else what the configuration says.
func (d database) setting(connection *value.Map, prefix string, names ...string) string {
	if v := connection.Value(names[0]); v != nil {
		return value.Str(v)
	}
	c := config{d.Facts}
	v, _ := first(prefix+names[len(names)-1], c.sources(true, true, true, true))
	return optionalText(v)
}

func (d database) mysqlDatabases(ctx context.Context, connection *value.Map) ([]string, error) {
	return d.mysql(ctx, "SHOW DATABASES", connection)
}

func (d database) mysqlExists(ctx context.Context, name string, connection *value.Map) (bool, error) {
	all, err := d.mysql(ctx, "SHOW DATABASES", connection)
	for _, known := range all {
		if known == name {
			return true, err
		}
	}
	return false, err
}

// mysqlTables lists the tables of a database; False is one that is not there.
func (d database) mysqlTables(ctx context.Context, name string, connection *value.Map) (any, error) {
	if ok, err := d.mysqlExists(ctx, name, connection); err != nil || !ok {
		return false, err
	}
	return d.mysql(ctx, "SHOW TABLES IN `"+strings.ReplaceAll(name, "`", "``")+"`", connection)
}

// psql gives the rows of a query as mappings by column; no rows where the server cannot be asked.
func (d database) psql(ctx context.Context, query, user, server, port, db, password, runas string, _ any) (*value.List, error) {
	connection := value.NewMap()
	for name, v := range map[string]string{"user": user, "host": server, "port": port, "maintenance_db": db, "pass": password} {
		if v != "" {
			connection.Set(name, v)
		}
	}
	get := func(name string) string { return d.setting(connection, "postgres.", name) }
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
	l := host.Line{Argv: append(argv, "--dbname", db, "-v", "datestyle=ISO,MDY", "--quiet", "--file=-"), RunAs: runas, Stdin: copied + ";\n"}
	if at := get("host"); runas == "" && (at == "" || strings.HasPrefix(at, "/")) {
		l.RunAs = "postgres"
	}
	if password = get("pass"); password != "" {
		l.Env = []string{"PGPASSWORD=" + password}
	}
	out, err := d.ask(ctx, l)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		d.log("error", fmt.Sprintf("psql ended with code %d: %s", out.Code, lastLine(out.Stderr)))
		return value.NewList(), nil
	}
	return rows(out.Stdout)
}

// rows reads a table with a line of names.
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

func (d database) psqlExists(ctx context.Context, name, user, server, port, db, password, runas string) (bool, error) {
	query := "SELECT datname FROM pg_database WHERE datname = '" + strings.ReplaceAll(name, "'", "''") + "'"
	found, err := d.psql(ctx, query, user, server, port, db, password, runas, nil)
	return err == nil && found.Len() > 0, err
}
