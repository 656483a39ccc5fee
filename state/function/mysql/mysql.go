// Package mysql implements mysql.*: the databases of MySQL and MariaDB servers.
package mysql

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mysql queries MySQL and MariaDB servers with their command-line client.
type mysql struct{ *function.Facts }

// Functions returns the functions of mysql that templates may call.
func Functions(f *function.Facts) function.Table {
	m := mysql{f}
	return function.Table{
		"mysql.db_list":   function.Of("**connection_args", m.databases),
		"mysql.db_tables": function.Of("name, **connection_args", m.tables),
		"mysql.db_exists": function.Of("name, **connection_args", m.exists),
	}.Needing(f.Host, "mysql", "default-mysql-client")
}

// query runs a statement. Neither the password nor the statement, which may contain one, is on the command line.
func (m mysql) query(ctx context.Context, statement string, connection *value.Map) ([]string, error) {
	argv := []string{"mysql", "--batch", "--skip-column-names"}
	for option, names := range map[string][]string{"--user": {"connection_user", "user"},
		"--host": {"connection_host", "host"},
		"--port": {"connection_port", "port"}, "--socket": {"connection_unix_socket", "unix_socket"}} {
		if v := m.ConnectionSetting(connection, "mysql.", names...); v != "" {
			argv = append(argv, option+"="+v)
		}
	}
	if file := m.ConnectionSetting(connection, "mysql.", "connection_default_file", "default_file"); file != "" {
		if err := m.Host.CheckRootOnly(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		argv = append([]string{argv[0], "--defaults-file=" + file}, argv[1:]...)
	}
	l := host.Line{Argv: argv, Stdin: statement + ";\n"}
	if password := m.ConnectionSetting(connection, "mysql.", "connection_pass", "pass"); password != "" {
		l.Env = []string{"MYSQL_PWD=" + password}
	}
	out, err := m.Output(ctx, l)
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("mysql ended with code %d: %s", out.Code, function.LastLine(out.Stderr))
	}
	return value.SplitLines(out.Stdout, false), err
}

func (m mysql) databases(ctx context.Context, connection *value.Map) ([]string, error) {
	return m.query(ctx, "SHOW DATABASES", connection)
}

func (m mysql) exists(ctx context.Context, name string, connection *value.Map) (bool, error) {
	all, err := m.query(ctx, "SHOW DATABASES", connection)
	for _, known := range all {
		if known == name {
			return true, err
		}
	}
	return false, err
}

// tables returns the tables of a database, or False if it does not exist.
func (m mysql) tables(ctx context.Context, name string, connection *value.Map) (any, error) {
	if ok, err := m.exists(ctx, name, connection); err != nil || !ok {
		return false, err
	}
	return m.query(ctx, "SHOW TABLES IN `"+strings.ReplaceAll(name, "`", "``")+"`", connection)
}
