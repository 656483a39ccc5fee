package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// privileges implements postgres_privileges.present and, with revoke, postgres_privileges.absent.
type privileges struct {
	server
	ObjectName  string `sls:"object_name,required"`
	ObjectType  string `sls:"object_type,required"`
	Privileges  any    `sls:"privileges"`
	GrantOption bool   `sls:"grant_option"`
	Prepend     string `sls:"prepend"` // the schema of the object

	revoke bool
}

func (p *privileges) Gone() bool { return p.revoke }
func (p *privileges) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	return client.Check(ctx, h, p)
}
func (p *privileges) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	return client.Apply(ctx, h, p)
}

// objectKind is a kind of object with privileges: the query for its access control list, and the letters of all
// privileges that it can have.
type objectKind struct{ acl, all string }

func objectKinds() map[string]objectKind {
	class := "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %[2]s AND c.relname = %[1]s"
	return map[string]objectKind{
		"table":      {"SELECT coalesce(c.relacl, acldefault('r', c.relowner)) FROM " + class, "arwdDxt"},
		"sequence":   {"SELECT coalesce(c.relacl, acldefault('S', c.relowner)) FROM " + class, "rwU"},
		"schema":     {"SELECT coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace WHERE nspname = %[1]s", "UC"},
		"tablespace": {"SELECT coalesce(spcacl, acldefault('t', spcowner)) FROM pg_tablespace WHERE spcname = %[1]s", "C"},
		"language":   {"SELECT coalesce(lanacl, acldefault('l', lanowner)) FROM pg_language WHERE lanname = %[1]s", "U"},
		"database":   {"SELECT coalesce(datacl, acldefault('d', datdba)) FROM pg_database WHERE datname = %[1]s", "CTc"},
	}
}

// privilegeLetters maps privileges to their letters in access control lists.
func privilegeLetters() map[string]string {
	return map[string]string{"SELECT": "r", "UPDATE": "w", "INSERT": "a", "DELETE": "d", "TRUNCATE": "D",
		"REFERENCES": "x", "TRIGGER": "t",
		"EXECUTE": "X", "USAGE": "U", "CREATE": "C", "CONNECT": "c", "TEMPORARY": "T", "TEMP": "T"}
}

func (p *privileges) Work(ctx context.Context, h *host.Host) (client.Work, error) {
	p.ObjectType = strings.ToLower(p.ObjectType)
	if p.ObjectType == "group" {
		return p.membership(ctx, h)
	}
	object, ok := objectKinds()[p.ObjectType]
	if !ok {
		return client.Work{}, diag.Argument.Hint(fmt.Errorf("object_type is %s", p.ObjectType),
			"it is table, sequence, schema, tablespace, language, database or group")
	}
	if p.ObjectName == "ALL" {
		return client.Work{}, diag.Argument.Hint(fmt.Errorf("object_name ALL is not supported"),
			"name each object in a state of its own")
	}
	wanted, letters, err := p.wanted(object)
	if err != nil {
		return client.Work{}, err
	}
	inner := fmt.Sprintf(object.acl, client.Quoted(p.ObjectName), client.Quoted(p.Prepend))
	rows, err := p.rows(ctx, h, "",
		"SELECT coalesce((SELECT rolname FROM pg_roles r WHERE r.oid = x.grantee), 'public'), x.privilege_type, "+
			"x.is_grantable FROM aclexplode(("+inner+")) x")
	if err != nil {
		return client.Work{}, err
	}
	has := map[string]bool{}
	for _, r := range rows {
		if len(r) == 3 && r[0] == p.Name && (!p.GrantOption || p.revoke || r[2] == "t") {
			has[privilegeLetters()[r[1]]] = true
		}
	}
	done := !p.revoke
	for _, letter := range letters {
		if p.revoke && has[letter] {
			done = false
		}
		if !p.revoke && !has[letter] {
			done = false
		}
	}
	if p.revoke && !slices.ContainsFunc(letters, func(l string) bool { return has[l] }) || done {
		return client.Work{Fine: fmt.Sprintf("the privileges of %s are as declared", p.Name)}, nil
	}
	return p.change(strings.Join(wanted, ", "), p.object()), nil
}

// wanted returns the declared privileges by name and by letter.
func (p *privileges) wanted(object objectKind) (names, letters []string, err error) {
	for _, name := range client.List(p.Privileges) {
		name = strings.ToUpper(name)
		if name == "ALL" {
			return []string{"ALL"}, strings.Split(object.all, ""), nil
		}
		letter, ok := privilegeLetters()[name]
		if !ok || !strings.Contains(object.all, letter) {
			return nil, nil, diag.Argument.Hint(fmt.Errorf("a %s has no privilege %s", p.ObjectType, name),
				"see GRANT in the documentation of PostgreSQL")
		}
		names, letters = append(names, name), append(letters, letter)
	}
	if len(names) == 0 {
		return []string{"ALL"}, strings.Split(object.all, ""), nil
	}
	return names, letters, nil
}

func (p *privileges) object() string {
	switch p.ObjectType {
	case "table", "sequence":
		return strings.ToUpper(p.ObjectType) + " " + ident(p.Prepend) + "." + ident(p.ObjectName)
	}
	return strings.ToUpper(p.ObjectType) + " " + ident(p.ObjectName)
}

func (p *privileges) grantee() string {
	if strings.EqualFold(p.Name, "public") {
		return "PUBLIC"
	}
	return ident(p.Name)
}

func (p *privileges) change(privileges, object string) client.Work {
	if p.revoke {
		return client.Work{Statements: []string{fmt.Sprintf("REVOKE %s ON %s FROM %s", privileges, object, p.grantee())},
			Changes: value.NewMap(p.Name, "Absent"),
			Would:   fmt.Sprintf("revoke %s on %s from %s", privileges, p.ObjectName, p.Name)}
	}
	statement := fmt.Sprintf("GRANT %s ON %s TO %s", privileges, object, p.grantee())
	if p.GrantOption {
		statement += " WITH GRANT OPTION"
	}
	return client.Work{Statements: []string{statement}, Changes: value.NewMap(p.Name, "Present"),
		Would: fmt.Sprintf("grant %s on %s to %s", privileges, p.ObjectName, p.Name)}
}

// membership returns the work for the object type group: the membership of a role in another role.
func (p *privileges) membership(ctx context.Context, h *host.Host) (client.Work, error) {
	_, member, err := p.one(ctx, h, "",
		"SELECT 1 FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles r ON r.oid = m.member WHERE "+
			"g.rolname = "+
			client.Quoted(p.ObjectName)+" AND r.rolname = "+client.Quoted(p.Name))
	if err != nil || member != p.revoke {
		return client.Work{Fine: fmt.Sprintf("%s is in %s as declared", p.Name, p.ObjectName)}, err
	}
	if p.revoke {
		return client.Work{Statements: []string{fmt.Sprintf("REVOKE %s FROM %s", ident(p.ObjectName), ident(p.Name))},
			Changes: value.NewMap(p.Name, "Absent"),
			Would:   fmt.Sprintf("take %s out of %s", p.Name, p.ObjectName)}, nil
	}
	statement := fmt.Sprintf("GRANT %s TO %s", ident(p.ObjectName), ident(p.Name))
	if p.GrantOption {
		statement += " WITH ADMIN OPTION"
	}
	return client.Work{Statements: []string{statement}, Changes: value.NewMap(p.Name, "Present"),
		Would: fmt.Sprintf("put %s into %s", p.Name, p.ObjectName)}, nil
}
