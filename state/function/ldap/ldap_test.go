package ldap_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/ldap"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestSearches calls both functions, with a simulated ldapsearch that records its arguments.
func TestSearches(t *testing.T) {
	h := statetest.NewHost(t)
	var ran, password string
	h.Provide(t, map[string]statetest.Program{"ldapsearch": func(args []string, c host.Command) (string, error) {
		ran, password = strings.Join(args, " "), c.Stdin
		if strings.Contains(ran, "dc=none") {
			return "", statetest.Exit{Code: 32, Text: "No such object (32)"}
		}
		return "dn: cn=a,dc=x\nuid: 1\ncn: a\ncn: b\n\n", nil
	}})
	table := ldap.Functions(&function.Facts{Host: h.Host, Options: value.NewMap("ldap.basedn", "dc=x", "ldap.port", 390,
		"ldap.anonymous", false, "ldap.binddn", "cn=admin", "ldap.bindpw", "s3cret")})
	for _, c := range []struct {
		name, args, password, want string
		given                      []any
		named                      *value.Map
	}{
		{"ldap.search", "-x -D cn=admin -y/dev/stdin -H ldap://localhost:390 -o nettimeout=20 -LLL -o ldif-wrap=no -b " +
			"dc=x -s sub -- cn=a", "s3cret", "[('cn=a,dc=x', {'cn': [b'a', b'b'], 'uid': [b'1']})]", []any{"cn=a"}, nil},
		{"ldap.search", "-ZZ -x -H ldaps://h -o nettimeout=20 -LLL -o ldif-wrap=no -b dc=y -s one -- cn=a uid",
			"", "[('cn=a,dc=x', {'cn': [b'a', b'b'], 'uid': [b'1']})]", []any{"cn=a", "dc=y", 1, value.Strings("uid")},
			value.NewMap("uri", "ldaps://h", "tls", true, "anonymous", true)},
		{"ldap3.search", "-Q -Y EXTERNAL -H ldapi:/// -o nettimeout=20 -LLL -o ldif-wrap=no -A -b dc=x -s base -- " +
			"(objectClass=*) cn", "", "{'cn=a,dc=x': {'cn': [b'a', b'b'], 'uid': [b'1']}}",
			[]any{value.NewMap("bind", value.NewMap("method", "sasl")), "dc=x", "base"},
			value.NewMap("attrlist", value.Strings("cn"), "attrsonly", 1)},
		{"ldap3.search", "-x -H ldapi:/// -o nettimeout=20 -LLL -o ldif-wrap=no -b dc=none -s sub -- (objectClass=*)",
			"", "{}", []any{value.NewMap(), "dc=none"}, nil},
	} {
		named := c.named
		if named == nil {
			named = value.NewMap()
		}
		v, err := table.Call(t.Context(), c.name, c.given, named)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if m := v.(*value.Map); c.name == "ldap.search" {
			v = m.Value("results")
			if m.Value("count") != 1 || !m.Has("time") {
				t.Errorf("the answer is %v", m)
			}
		}
		if got := value.Repr(v); got != c.want || ran != c.args || password != c.password {
			t.Errorf("%s gives %s by ldapsearch %s and %q\nnot %s by %s", c.name, got, ran, password, c.want, c.args)
		}
	}
	for _, spec := range []any{"text", value.NewMap("uri", "x"), value.NewMap("bind", value.NewMap("method", "odd"))} {
		if _, err := table.Call(t.Context(), "ldap3.search", []any{spec, "dc=x"}, value.NewMap()); err == nil {
			t.Errorf("%v is accepted", spec)
		}
	}
	if _, err := table.Call(t.Context(), "ldap.search", []any{"a", "dc=x", 7}, value.NewMap()); err == nil {
		t.Error("the scope 7 is accepted")
	}
}
