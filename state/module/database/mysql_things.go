package database

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// myDatabase is mysql_database.present.
type myDatabase struct {
	mysql
	CharacterSet string `sls:"character_set"`
	Collate      string `sls:"collate"`
}

func (d *myDatabase) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, d)
}
func (d *myDatabase) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, d)
}

func (d *myDatabase) work(ctx context.Context, h *host.Host) (work, error) {
	rows, err := d.rows(ctx, h, "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+quoted(d.Name))
	if err != nil {
		return work{}, err
	}
	options := ""
	if d.CharacterSet != "" {
		options += " CHARACTER SET = " + quoted(d.CharacterSet)
	}
	if d.Collate != "" {
		options += " COLLATE = " + quoted(d.Collate)
	}
	if len(rows) == 0 {
		return created("database", d.Name, "CREATE DATABASE "+tick(d.Name)+options), nil
	}
	changed := value.NewMap()
	if d.CharacterSet != "" && !strings.EqualFold(d.CharacterSet, rows[0][0]) {
		changed.Set("character_set", value.NewMap("old", rows[0][0], "new", d.CharacterSet))
	}
	if d.Collate != "" && !strings.EqualFold(d.Collate, rows[0][1]) {
		changed.Set("collate", value.NewMap("old", rows[0][1], "new", d.Collate))
	}
	w := work{changes: value.NewMap(d.Name, changed), fine: "the database " + d.Name + " is as declared", would: "change the database " + d.Name}
	if changed.Len() > 0 {
		w.statements = []string{"ALTER DATABASE " + tick(d.Name) + options}
	}
	return w, nil
}

// myDatabaseAbsent is mysql_database.absent.
type myDatabaseAbsent struct{ mysql }

func (d *myDatabaseAbsent) gone() bool { return true }
func (d *myDatabaseAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, d)
}
func (d *myDatabaseAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, d)
}

func (d *myDatabaseAbsent) work(ctx context.Context, h *host.Host) (work, error) {
	if slices.Contains([]string{"mysql", "information_schema", "performance_schema", "sys"}, strings.ToLower(d.Name)) {
		return work{}, diag.WithHint(fmt.Errorf("the database %s is the server's own", d.Name), "leave it there")
	}
	rows, err := d.rows(ctx, h, "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+quoted(d.Name))
	if err != nil || len(rows) == 0 {
		return work{fine: "there is no database " + d.Name}, err
	}
	return work{statements: []string{"DROP DATABASE " + tick(d.Name)}, changes: value.NewMap(d.Name, "Absent"), would: "drop the database " + d.Name}, nil
}

// myUser is mysql_user.present.
type myUser struct {
	mysql
	Host              string `sls:"host"`
	Password          string `sls:"password"`
	PasswordHash      string `sls:"password_hash"`
	AllowPasswordless bool   `sls:"allow_passwordless"`
	UnixSocket        bool   `sls:"unix_socket"`
	PasswordColumn    any    `sls:"password_column"` // the server is asked by a name that all have
	AuthPlugin        string `sls:"auth_plugin"`
}

func (u *myUser) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, u)
}
func (u *myUser) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, u)
}

func (u *myUser) work(ctx context.Context, h *host.Host) (work, error) {
	if u.Password == "" && u.PasswordHash == "" && !u.AllowPasswordless && !u.UnixSocket {
		return work{}, diag.WithHint(fmt.Errorf("user %s would have no password", u.Name), "set password or password_hash, or allow_passwordless: True")
	}
	who := account(u.Name, u.Host)
	rows, err := u.rows(ctx, h, "SELECT plugin, authentication_string FROM mysql.user WHERE User = "+quoted(u.Name)+" AND Host = "+quoted(u.Host))
	if err != nil {
		return work{}, err
	}
	isMaria, err := u.mariaDB(ctx, h)
	if err != nil {
		return work{}, err
	}
	if len(rows) == 0 {
		w := created("user", u.Name, "CREATE USER "+who+u.identified(isMaria))
		return w, nil
	}
	same, err := u.same(ctx, h, rows[0])
	if err != nil || same {
		return work{fine: fmt.Sprintf("the user %s is as declared", who)}, err
	}
	return work{statements: []string{"ALTER USER " + who + u.identified(isMaria)}, changes: value.NewMap(u.Name, "Updated"), would: "change the password of " + who}, nil
}

func (m *mysql) mariaDB(ctx context.Context, h *host.Host) (bool, error) {
	rows, err := m.rows(ctx, h, "SELECT VERSION()")
	return err == nil && len(rows) > 0 && strings.Contains(strings.ToLower(rows[0][0]), "mariadb"), err
}

// identified says how the user proves who it is. A native password leaves the host as its hash.
func (u *myUser) identified(isMaria bool) string {
	hash := u.PasswordHash
	if hash == "" && u.Password != "" {
		hash = nativeHash(u.Password)
	}
	word := " AS "
	switch {
	case u.UnixSocket && isMaria:
		return " IDENTIFIED VIA unix_socket"
	case u.UnixSocket:
		return " IDENTIFIED WITH auth_socket"
	case hash == "":
		return " IDENTIFIED BY ''"
	case isMaria && u.AuthPlugin == "mysql_native_password":
		return " IDENTIFIED BY PASSWORD " + quoted(hash)
	case isMaria:
		word = " USING "
		if u.PasswordHash == "" {
			return " IDENTIFIED VIA " + u.plugin() + " USING PASSWORD(" + quoted(u.Password) + ")"
		}
		return " IDENTIFIED VIA " + u.plugin() + word + quoted(hash)
	case u.AuthPlugin == "mysql_native_password" || u.PasswordHash != "":
		return " IDENTIFIED WITH " + u.plugin() + word + quoted(hash)
	}
	return " IDENTIFIED WITH " + u.plugin() + " BY " + quoted(u.Password)
}

// plugin is the name of the plugin, if it is one that a name can be.
func (u *myUser) plugin() string { return tick(u.AuthPlugin) }

// nativeHash is what servers keep of a native password.
func nativeHash(password string) string {
	first := sha1.Sum([]byte(password))
	second := sha1.Sum(first[:])
	return "*" + strings.ToUpper(hex.EncodeToString(second[:]))
}

// same compares what the server keeps with what was asked for. Of what is hashed with a salt only a
// login tells.
func (u *myUser) same(ctx context.Context, h *host.Host, row []string) (bool, error) {
	plugin, kept := row[0], ""
	if len(row) > 1 {
		kept = row[1]
	}
	switch {
	case u.UnixSocket:
		return plugin == "unix_socket" || plugin == "auth_socket", nil
	case u.PasswordHash != "":
		return strings.EqualFold(kept, u.PasswordHash), nil
	case u.Password == "":
		return kept == "", nil
	case plugin == "mysql_native_password" || plugin == "":
		return u.AuthPlugin == "mysql_native_password" && strings.EqualFold(kept, nativeHash(u.Password)), nil
	case plugin != u.AuthPlugin && u.AuthPlugin != "mysql_native_password":
		return false, nil
	}
	login := mysql{ConnUser: u.Name, ConnPass: u.Password, ConnHost: u.ConnHost, ConnPort: u.ConnPort, ConnSocket: u.ConnSocket, settings: func(name string) string {
		if u.settings == nil || strings.HasSuffix(name, "default_file") {
			return ""
		}
		return u.settings(name)
	}}
	_, err := login.rows(ctx, h, "SELECT 1")
	if errors.Is(err, errNoServer) {
		return false, err
	}
	return err == nil, nil
}

// myUserAbsent is mysql_user.absent.
type myUserAbsent struct {
	mysql
	Host string `sls:"host"`
}

func (u *myUserAbsent) gone() bool { return true }
func (u *myUserAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, u)
}
func (u *myUserAbsent) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, u)
}

func (u *myUserAbsent) work(ctx context.Context, h *host.Host) (work, error) {
	who := account(u.Name, u.Host)
	rows, err := u.rows(ctx, h, "SELECT 1 FROM mysql.user WHERE User = "+quoted(u.Name)+" AND Host = "+quoted(u.Host))
	if err != nil || len(rows) == 0 {
		return work{fine: "there is no user " + who}, err
	}
	return work{statements: []string{"DROP USER " + who}, changes: value.NewMap(u.Name, "Absent"), would: "drop the user " + who}, nil
}

// myGrant is mysql_grants.present and, with revoke, absent.
type myGrant struct {
	mysql
	Grant       string `sls:"grant"`
	Database    string `sls:"database"` // such as shop.*
	User        string `sls:"user"`
	Host        string `sls:"host"`
	GrantOption bool   `sls:"grant_option"`
	Escape      bool   `sls:"escape"` // _ and % in the name of the database are themselves
	RevokeFirst bool   `sls:"revoke_first"`
	SSLOption   any    `sls:"ssl_option"`

	revoke bool
}

func (g *myGrant) gone() bool { return g.revoke }
func (g *myGrant) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return check(ctx, h, g)
}
func (g *myGrant) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return apply(ctx, h, g)
}

var privilegeForm = regexp.MustCompile(`^[A-Z_ ]+(\s*\([^)]*\))?$`)

// privileges are those that are asked for, in capitals and in order.
func (g *myGrant) privileges() ([]string, error) {
	var all []string
	for _, p := range splitPrivileges(g.Grant) {
		p = strings.Join(strings.Fields(strings.ToUpper(p)), " ")
		if p == "ALL PRIVILEGES" {
			p = "ALL"
		}
		if !privilegeForm.MatchString(p) {
			return nil, diag.WithHint(fmt.Errorf("%q is no privilege", p), "write privileges with commas between them: select,insert")
		}
		all = append(all, p)
	}
	if len(all) == 0 || g.User == "" || g.Database == "" {
		return nil, diag.WithHint(fmt.Errorf("the grant %s lacks its argument grant, database or user", g.Name), "write all three")
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// splitPrivileges splits at the commas that are not between brackets.
func splitPrivileges(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, r := range text + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth <= 0:
			if part := strings.TrimSpace(text[start:i]); part != "" {
				parts = append(parts, part)
			}
			start = i + 1
		}
	}
	return parts
}

// place is what the privileges are on.
func (g *myGrant) place() (string, error) {
	db, table, ok := strings.Cut(g.Database, ".")
	if !ok {
		return "", diag.WithHint(fmt.Errorf("%q names no tables", g.Database), "write `- database: %s.*`", g.Database)
	}
	if db != "*" {
		db = strings.Trim(db, "`")
		if g.Escape && table == "*" {
			db = strings.NewReplacer("_", `\_`, "%", `\%`).Replace(strings.NewReplacer(`\_`, "_", `\%`, "%").Replace(db))
		}
		db = tick(db)
	}
	if table != "*" {
		table = tick(strings.Trim(table, "`"))
	}
	return db + "." + table, nil
}

var grantForm = regexp.MustCompile("(?s)^GRANT (.+) ON (?:(?:TABLE|DATABASE) )?(.+?) TO .+?((?: WITH GRANT OPTION)?)$")

// has reads what the user may at the place already.
func (g *myGrant) has(ctx context.Context, h *host.Host, place string) (privileges []string, option bool, err error) {
	rows, err := g.rows(ctx, h, "SHOW GRANTS FOR "+account(g.User, g.Host))
	var failed *host.ProgramError
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "ERROR 1141") { // nobody granted anything to such a user
		return nil, false, nil
	}
	for _, r := range rows {
		m := grantForm.FindStringSubmatch(strings.Join(r, "\t"))
		if m == nil || m[2] != place {
			continue
		}
		option = option || m[3] != ""
		for _, p := range splitPrivileges(m[1]) {
			p = strings.ToUpper(p)
			if p == "ALL PRIVILEGES" {
				p = "ALL"
			}
			privileges = append(privileges, p)
		}
	}
	return privileges, option, err
}

func (g *myGrant) work(ctx context.Context, h *host.Host) (work, error) {
	wanted, err := g.privileges()
	if err != nil {
		return work{}, err
	}
	place, err := g.place()
	if err != nil {
		return work{}, err
	}
	users, err := g.rows(ctx, h, "SELECT 1 FROM mysql.user WHERE User = "+quoted(g.User)+" AND Host = "+quoted(g.Host))
	if err != nil {
		return work{}, err
	}
	who := account(g.User, g.Host)
	if len(users) == 0 {
		if g.revoke {
			return work{fine: "there is no user " + who}, nil
		}
		return work{}, diag.WithHint(fmt.Errorf("there is no user %s", who), "require the mysql_user.present state that makes it")
	}
	have, option, err := g.has(ctx, h, place)
	if err != nil {
		return work{}, err
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(p string) bool {
		return slices.Contains(have, p) || slices.Contains(have, "ALL") || p == "USAGE" && len(have) > 0
	})
	text := strings.Join(wanted, ", ")
	if g.revoke {
		if len(missing) == len(wanted) && !(slices.Contains(wanted, "ALL") && len(have) > 0) {
			return work{fine: fmt.Sprintf("%s has no %s on %s", who, text, place)}, nil
		}
		return work{statements: []string{fmt.Sprintf("REVOKE %s ON %s FROM %s", text, place, who)}, changes: value.NewMap(g.Name, "Absent"),
			would: fmt.Sprintf("revoke %s on %s from %s", text, place, who)}, nil
	}
	w := work{changes: value.NewMap(g.Name, "Present"), fine: fmt.Sprintf("%s has %s on %s", who, text, place), would: fmt.Sprintf("grant %s on %s to %s", text, place, who)}
	more := slices.ContainsFunc(have, func(p string) bool {
		return !slices.Contains(wanted, p) && p != "USAGE" && !slices.Contains(wanted, "ALL")
	})
	if len(missing) == 0 && (option || !g.GrantOption) && !(g.RevokeFirst && more) {
		return w, nil
	}
	if g.RevokeFirst && len(have) > 0 {
		w.statements = append(w.statements, fmt.Sprintf("REVOKE ALL PRIVILEGES ON %s FROM %s", place, who))
	}
	statement := fmt.Sprintf("GRANT %s ON %s TO %s", text, place, who)
	if g.GrantOption {
		statement += " WITH GRANT OPTION"
	}
	w.statements = append(w.statements, statement)
	return w, nil
}

// myQuery is mysql_query.run: statements that are run in every run.
type myQuery struct {
	mysql
	Database      string `sls:"database,required"`
	Query         string `sls:"query"`
	Output        string `sls:"output"` // a file for what comes of it
	Grain         any    `sls:"grain"`
	Key           any    `sls:"key"`
	Overwrite     bool   `sls:"overwrite"`
	CheckDBExists any    `sls:"check_db_exists"` // a database that is not there is a failure
	ClientFlags   any    `sls:"client_flags"`
}

func (q *myQuery) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if q.Output == "grain" {
		return module.Diff{}, diag.WithHint(errors.New("grains are not written by states here"), "set output to the path of a file")
	}
	if q.Output != "" && !q.Overwrite {
		if _, err := h.Files.Stat(q.Output); err == nil {
			return module.Diff{Comment: q.Output + " is there, so nothing is run"}, nil
		}
	}
	if what, err := q.awaits(h); err != nil || what != "" {
		return module.Awaits(what, "run "+q.Name), err
	}
	return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: "would run " + q.Name}, nil
}

func (q *myQuery) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if what, err := q.awaits(h); err != nil || what != "" {
		if err != nil {
			return module.Report{}, err
		}
		return module.Report{}, q.missing(what)
	}
	p, args := q.client(h)
	p.Stdin = q.Query + "\n;\n"
	out, err := p.Do(ctx, h, append(args, "--database="+q.Database)...)
	if err != nil {
		return module.Report{}, q.explain(err)
	}
	if q.Output == "" {
		return module.Report{Changes: value.NewMap("query", "Executed"), Comment: strings.TrimSpace("ran " + q.Name + "\n" + out)}, nil
	}
	mode := fs.FileMode(0o600)
	err = h.Files.Write(q.Output, host.NewFile{Content: strings.NewReader(out), Mode: &mode, UID: -1, GID: -1})
	return module.Report{Changes: value.NewMap("query", "Executed. Output into "+q.Output), Comment: "ran " + q.Name}, err
}

// myQueryFile is mysql_query.run_file: the statements stand in a file of the host.
type myQueryFile struct {
	myQuery
	File string `sls:"query_file"`
}

func (q *myQueryFile) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	data, err := h.Files.ReadFile(q.File)
	if err != nil {
		return module.Report{}, diag.WithHint(fmt.Errorf("reading the statements: %w", err), "name a file of the host in query_file, and require the state that makes it")
	}
	q.Query = string(data)
	return q.myQuery.Apply(ctx, h, d)
}
