package guest

import (
	"strings"
	"testing"
)

// TestNamesAndPathsOfGuests checks texts that become parts of settings, units and paths.
func TestNamesAndPathsOfGuests(t *testing.T) {
	check := func(what string, is func(string) bool, good, bad []string) {
		t.Helper()
		for text, want := range map[string][]string{"good": good, "bad": bad} {
			for _, one := range want {
				if is(one) != (text == "good") {
					t.Errorf("%q is a %s %s", one, text, what)
				}
			}
		}
	}
	check("label", isLabel, []string{"a", "A-1", "shop-prod-eu1-web1", strings.Repeat("a", 63)},
		[]string{"", "-a", "a-", "a.b", "a_b", "a\n", "ä", strings.Repeat("a", 64)})
	check("unit", isUnit, []string{"a.service", "a@b.c.timer", "9_x-y.mount", strings.Repeat("a", 201) + ".service"},
		[]string{"", ".service", "a", "a.", "a.Service", "@a.service", "a b.service", "a.service\n", "a/b.service",
			strings.Repeat("a", 202) + ".service"})
	check("path", func(p string) bool { return checkPath("path", p) == nil },
		[]string{"/", "/a", "/a@b+c._-/D9"}, []string{"", "a", "a/b", "/a/", "/a/../b", "/a b", "/a\n", "/a:b", "//a"})
	check("ID", func(id string) bool { return checkID(id) == nil }, []string{strings.Repeat("0f", 16)},
		[]string{"", strings.Repeat("0f", 15), strings.Repeat("0F", 16), strings.Repeat("0g", 16),
			strings.Repeat("0f", 16) + "\n"})
}
