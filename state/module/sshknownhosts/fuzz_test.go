package sshknownhosts

import (
	"strings"
	"testing"
)

// FuzzKnownHosts adds a host to arbitrary files and removes it. Other lines must not change.
func FuzzKnownHosts(f *testing.F) {
	f.Add("h.example,10.0.0.1 ssh-rsa AAAA c\n# c\n|1|AAAA|BBBB ssh-rsa AAAA\n@revoked * ssh-rsa AAAA\n",
		"h.example", true)
	f.Add("*.e?ample,!x ssh-rsa AAAA\n[h]:22 ssh-rsa AAAA\n|1| ssh-rsa A\n,,, ssh-rsa AAAA\n", "h.example", false)
	f.Fuzz(func(t *testing.T, text, name string, hide bool) {
		p := present{Name: name, Key: "AAAA", Enc: "rsa", HashHosts: hide}
		if p.Valid() != nil || len(strings.Fields(name)) != 1 || strings.ContainsAny(name, "#@!|*?\r\v\f") {
			return
		}
		file := parseFile(text)
		names := name
		if hide {
			names = hash(name)
		}
		added := file.text(name, func(entry) bool { return true }, []entry{{names: names, kind: "ssh-rsa", key: "AAAA"}})
		if found := parseFile(added).find(name, false); len(found) != 1 {
			t.Errorf("%s is %d times in %q", name, len(found), added)
		}
		gone := parseFile(added).text(name, func(entry) bool { return true }, nil)
		if len(parseFile(gone).find(name, false)) > 0 ||
			len(file.find(name, false)) == 0 && strings.TrimSuffix(gone, "\n") != strings.TrimSuffix(text, "\n") {
			t.Errorf("%q became %q", text, gone)
		}
	})
}
