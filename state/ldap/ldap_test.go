package ldap_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/ldap"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestSearch parses what ldapsearch prints, and compares its arguments and environment.
func TestSearch(t *testing.T) {
	h := statetest.NewHost(t)
	h.Provide(t, map[string]statetest.Program{"ldapsearch": func(args []string, c host.Command) (string, error) {
		if line := strings.Join(args, " "); line != "-ZZ -x -D cn=admin -y/dev/stdin -H ldap://h -o nettimeout=20 -LLL -o "+
			"ldif-wrap=no -b dc=x" || c.Stdin != "pa ss" {
			t.Errorf("ldapsearch got %s, and %q", line, c.Stdin)
		}
		for _, want := range []string{"LDAPTLS_CACERT=/ca.pem", "LDAPTLS_PROTOCOL_MIN=3.3", "LDAPTIMEOUT=5"} {
			if !slices.Contains(c.Env, want) {
				t.Errorf("the environment lacks %s", want)
			}
		}
		return "dn: dc=x\ndc: x\no:: w6Q=\nempty:\n\n# refldap://h2/dc=y\n\ndn:: Y249w6QsZGM9eA==\ncn: a\ncn:  b: c\n\n", nil
	}})
	s, err := ldap.Parse(value.NewMap("url", "ldap://h", "bind", value.NewMap("dn", "cn=admin", "password", "pa ss"),
		"tls", value.NewMap("starttls", nil, "cacertfile", "/ca.pem", "protocol_min", 0x303),
		"opts", value.NewMap("timeout", 5)), "ldapi:///")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Search(t.Context(), h.Host, "-b", "dc=x")
	want := []ldap.Entry{{"dc=x", ldap.Attributes{"dc": {"x"}, "o": {"ä"}, "empty": {""}}},
		{"cn=ä,dc=x", ldap.Attributes{"cn": {"a", " b: c"}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the entries are %v, %v", got, err)
	}
}
