// Package mysql implements the mysql_ states for databases, users, grants and queries of a MySQL or MariaDB
// server, with the client mysql.
package mysql

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
		"mysql_database": {
			"present": func() module.Resource { return &database{server: c()} },
			"absent":  func() module.Resource { return &databaseAbsent{server: c()} },
		},
		"mysql_user": {
			"present": func() module.Resource {
				return &user{server: c(), Host: "localhost", AuthPlugin: "mysql_native_password"}
			},
			"absent": func() module.Resource { return &userAbsent{server: c(), Host: "localhost"} },
		},
		"mysql_grants": {
			"present": func() module.Resource { return &grant{server: c(), Host: "localhost", Escape: true} },
			"absent":  func() module.Resource { return &grant{server: c(), Host: "localhost", Escape: true, revoke: true} },
		},
		"mysql_query": {
			"run":      func() module.Resource { return &query{server: c(), Overwrite: true} },
			"run_file": func() module.Resource { return &queryFile{query: query{server: c(), Overwrite: true}} },
		},
	}
}

// server holds the arguments for access to a MySQL or MariaDB server.
type server struct {
	Name        string `sls:"name"`
	ConnUser    string `sls:"connection_user"`
	ConnPass    string `sls:"connection_pass"`
	ConnHost    string `sls:"connection_host"`
	ConnPort    string `sls:"connection_port"`
	ConnSocket  string `sls:"connection_unix_socket"`
	ConnFile    string `sls:"connection_default_file"`
	ConnCharset string `sls:"connection_charset"`
	ConnDB      any    `sls:"connection_db"`          // no effect: no state depends on the default database
	ConnConv    any    `sls:"connection_conv"`        // no effect: a setting of client libraries
	ConnUnicode any    `sls:"connection_use_unicode"` // no effect: a setting of client libraries
	ConnSSL     any    `sls:"connection_ssl"`         // no effect: set in the client's own files

	settings client.Settings
}

func (m *server) setting(given, name string) string {
	if given != "" || m.settings == nil {
		return given
	}
	return m.settings("mysql." + name)
}

// client returns the client program, and the arguments to log in.
func (m *server) client(h *host.Host) (program.Program, []string) {
	p := program.Program{Name: "mysql", Package: "default-mysql-client", Dir: "/", Limit: 30 * time.Minute}
	if _, ok := h.Which("mysql"); !ok {
		if _, ok := h.Which("mariadb"); ok {
			p.Name = "mariadb"
		}
	}
	var args []string
	if file := m.setting(m.ConnFile, "default_file"); file != "" {
		args = append(args, "--defaults-extra-file="+file) // must be the first option
		p = p.Trusting(file)
	}
	args = append(args, "--batch", "--skip-column-names", "--connect-timeout=20")
	for _, f := range []struct{ option, v string }{{"--user=", m.setting(m.ConnUser, "user")},
		{"--host=", m.setting(m.ConnHost, "host")},
		{"--port=", m.setting(m.ConnPort, "port")}, {"--socket=", m.setting(m.ConnSocket, "unix_socket")},
		{"--default-character-set=", m.setting(m.ConnCharset, "charset")}} {
		if f.v != "" {
			args = append(args, f.option+f.v)
		}
	}
	password := m.setting(m.ConnPass, "pass")
	if password != "" {
		p.Env = append(p.Env, "MYSQL_PWD="+password)
	}
	p.Hide = client.Hiding(password)
	return p, args
}

func (m *server) Awaits(h *host.Host) (string, error) {
	p, _ := m.client(h)
	if ok, err := p.Ready(h); err != nil || !ok {
		return p.Name, err
	}
	return "", nil
}

func (m *server) Missing(what string) error {
	return client.Missing(program.Program{Name: what, Package: "default-mysql-client"}, what)
}

func (m *server) Gone() bool { return false }

// rows runs a query and returns its rows.
func (m *server) rows(ctx context.Context, h *host.Host, query string) ([][]string, error) {
	p, args := m.client(h)
	p.Stdin = strict + query + ";\n"
	out, err := p.Ask(ctx, h, args...)
	if err != nil {
		return nil, m.explain(err)
	}
	var rows [][]string
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i := range fields {
			fields[i] = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\0`, "\x00").Replace(fields[i])
		}
		rows = append(rows, fields)
	}
	return rows, nil
}

// strict makes backslashes in literals ordinary characters, as in standard SQL.
const strict = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES');\n"

// explain adds ErrNoServer to the error of a server that does not respond.
func (m *server) explain(err error) error {
	var failed *program.Error
	if !errors.As(err, &failed) {
		return err
	}
	for _, code := range []string{"ERROR 2002", "ERROR 2003", "ERROR 2005", "ERROR 2013"} {
		if strings.Contains(failed.Stderr, code) {
			return client.NoServer(err, "MySQL or MariaDB")
		}
	}
	return err
}

func (m *server) Run(ctx context.Context, h *host.Host, statements []string) error {
	p, args := m.client(h)
	p.Stdin = strict + strings.Join(statements, ";\n") + ";\n"
	hide := p.Hide
	// The server quotes a statement that it cannot parse, which may contain a password.
	p.Hide = func(text string) string {
		before, _, _ := strings.Cut(hide(text), "the right syntax to use near")
		return before
	}
	_, err := p.Do(ctx, h, args...)
	if err != nil {
		return m.explain(err)
	}
	return nil
}

// tick quotes an identifier.
func tick(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// account returns an account in SQL: a user and the host from which it connects.
func account(user, from string) string { return client.Quoted(user) + "@" + client.Quoted(from) }
