package accounts

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/passwd"
)

// FuzzAccountFiles reads account files with arbitrary content.
func FuzzAccountFiles(f *testing.F) {
	f.Add("root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000:A,,,:/home/alice:/bin/sh\n")
	f.Add("+::::::\n-mallory\n# comment:x:1:1:::\nbroken:x:one:1:::\n::::::\n")
	f.Add("users:x:100:alice,bob\nempty:x:5:\nadm:x:4:,,\n")
	f.Add("alice:$6$a$b:19000:0:99999:7:::\nbob:!::::::: \n")
	f.Add("passwd: files [NOTFOUND=return] sss # x\ngroup\n:\n")
	f.Fuzz(func(t *testing.T, text string) {
		users, groups := passwd.Users(text), passwd.Groups(text)
		tables := index(users, groups)
		for _, u := range users {
			if u.Name == "" || strings.ContainsAny(u.Name, ":\n") {
				t.Errorf("a user is called %q", u.Name)
			}
			if first := tables.users[u.Name]; first.Name != u.Name {
				t.Errorf("the user %q is not found", u.Name)
			}
		}
		for _, g := range groups {
			if tables.groups[g.Name].Name != g.Name || len(tables.byGID[g.GID]) == 0 {
				t.Errorf("the group %q is not found", g.Name)
			}
		}
		for _, s := range parseShadow(text) {
			if s.Name == "" || strings.Contains(s.Hash, ":") {
				t.Errorf("a shadow line is %+v", s)
			}
		}
		passwd.OtherSources(text)
		if strings.HasPrefix(withoutBanner(text), banner) && !strings.Contains(strings.TrimPrefix(text, banner), banner) {
			t.Errorf("the banner stays in %q", text)
		}
	})
}
