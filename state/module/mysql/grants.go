package mysql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// grant implements mysql_grants.present and, with revoke, mysql_grants.absent.
type grant struct {
	server
	Grant       string `sls:"grant"`
	Database    string `sls:"database"` // such as shop.*
	User        string `sls:"user"`
	Host        string `sls:"host"`
	GrantOption bool   `sls:"grant_option"`
	Escape      bool   `sls:"escape"` // escape _ and % in the name of the database
	RevokeFirst bool   `sls:"revoke_first"`
	SSLOption   any    `sls:"ssl_option"`

	revoke bool
}

func (g *grant) Gone() bool { return g.revoke }
func (g *grant) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, g)
}
func (g *grant) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, g)
}

var privilegeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z_ ]+(\s*\([^)]*\))?$`) })

// privileges returns the declared privileges, in upper case and sorted.
func (g *grant) privileges() ([]string, error) {
	var all []string
	for _, p := range splitPrivileges(g.Grant) {
		p = strings.Join(strings.Fields(strings.ToUpper(p)), " ")
		if p == "ALL PRIVILEGES" {
			p = "ALL"
		}
		if !privilegeForm().MatchString(p) {
			return nil, diag.Argument.Hint(fmt.Errorf("%q is not a privilege", p),
				"write privileges with commas between them: select,insert")
		}
		all = append(all, p)
	}
	if len(all) == 0 || g.User == "" || g.Database == "" {
		return nil, diag.Argument.Hint(fmt.Errorf("the grant %s lacks its argument grant, database or user", g.Name),
			"write all three")
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// splitPrivileges splits at commas outside of parentheses.
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

// place returns the object of the privileges in SQL.
func (g *grant) place() (string, error) {
	db, table, ok := strings.Cut(g.Database, ".")
	if !ok {
		return "", diag.Argument.Hint(fmt.Errorf("%q names no tables", g.Database), "write `- database: %s.*`", g.Database)
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

var grantForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?s)^GRANT (.+) ON (?:(?:TABLE|DATABASE) )?(.+?) TO .+?((?: WITH GRANT OPTION)?)$")
})

// has returns the privileges that the user has on an object, and whether the user can grant them.
func (g *grant) has(ctx context.Context, h *host.Host, place string) (privileges []string, option bool, err error) {
	rows, err := g.rows(ctx, h, "SHOW GRANTS FOR "+account(g.User, g.Host))
	var failed *program.Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "ERROR 1141") { // no such grant
		return nil, false, nil
	}
	for _, r := range rows {
		m := grantForm().FindStringSubmatch(strings.Join(r, "\t"))
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

func (g *grant) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	wanted, err := g.privileges()
	if err != nil {
		return client.Work{}, err
	}
	place, err := g.place()
	if err != nil {
		return client.Work{}, err
	}
	users, err := g.rows(ctx, h, "SELECT 1 FROM mysql.user WHERE User = "+client.Quoted(g.User)+
		" AND Host = "+client.Quoted(g.Host))
	if err != nil {
		return client.Work{}, err
	}
	who := account(g.User, g.Host)
	if len(users) == 0 {
		if g.revoke {
			return client.Work{Fine: "there is no user " + who}, nil
		}
		return client.Work{}, diag.Prerequisite.Hint(fmt.Errorf("there is no user %s", who),
			"require the mysql_user.present state that makes it")
	}
	have, option, err := g.has(ctx, h, place)
	if err != nil {
		return client.Work{}, err
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(p string) bool {
		return slices.Contains(have, p) || slices.Contains(have, "ALL") || p == "USAGE" && len(have) > 0
	})
	text := strings.Join(wanted, ", ")
	if g.revoke {
		if len(missing) == len(wanted) && !(slices.Contains(wanted, "ALL") && len(have) > 0) {
			return client.Work{Fine: fmt.Sprintf("%s has no %s on %s", who, text, place)}, nil
		}
		return client.Work{Statements: []string{fmt.Sprintf("REVOKE %s ON %s FROM %s", text, place, who)},
			Changes: value.NewMap(g.Name, "Absent"),
			Would:   fmt.Sprintf("revoke %s on %s from %s", text, place, who)}, nil
	}
	w := client.Work{Changes: value.NewMap(g.Name, "Present"), Fine: fmt.Sprintf("%s has %s on %s", who, text, place),
		Would: fmt.Sprintf("grant %s on %s to %s", text, place, who)}
	more := slices.ContainsFunc(have, func(p string) bool {
		return !slices.Contains(wanted, p) && p != "USAGE" && !slices.Contains(wanted, "ALL")
	})
	if len(missing) == 0 && (option || !g.GrantOption) && !(g.RevokeFirst && more) {
		return w, nil
	}
	if g.RevokeFirst && len(have) > 0 {
		w.Statements = append(w.Statements, fmt.Sprintf("REVOKE ALL PRIVILEGES ON %s FROM %s", place, who))
	}
	statement := fmt.Sprintf("GRANT %s ON %s TO %s", text, place, who)
	if g.GrantOption {
		statement += " WITH GRANT OPTION"
	}
	w.Statements = append(w.Statements, statement)
	return w, nil
}
