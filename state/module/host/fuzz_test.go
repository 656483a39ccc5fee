package host

import (
	"strings"
	"testing"
)

// FuzzHosts adds and removes names in arbitrary files.
func FuzzHosts(f *testing.F) {
	f.Add("127.0.0.1 localhost\n\n# c\n::1\tlocalhost six # both\n", "10.0.0.1", "a")
	f.Add("10.0.0.1\n10.0.0.1 a a b#c\n#\n \t", "10.0.0.1", "a")
	f.Add("# only\r\n10.0.0.1 a\r\n", "10.0.0.1", "a")
	f.Fuzz(func(t *testing.T, text, ip, name string) {
		if addresses([]string{ip}) != nil || oneName(name) != nil || len(strings.Fields(name)) != 1 ||
			strings.Fields(name)[0] != name {
			return
		}
		p := present{Name: name, IP: []string{ip}}
		p.change(parse(text))
		if !parse(p.text).has(ip, name) {
			t.Errorf("%s %s is missing in %q made of %q", ip, name, p.text, text)
		}
		if again, _ := p.change(parse(p.text)); again.Len() > 0 {
			t.Errorf("a second time %v would change in %q", again.Names(), p.text)
		}
		if gone := without(p.text, ip, name); parse(gone).has(ip, name) {
			t.Errorf("%s %s stays in %q", ip, name, gone)
		}
		if only := replaced(text, ip, name); strings.Join(parse(only).at[ip].names, " ") != name {
			t.Errorf("%s has other names than %s in %q", ip, name, only)
		}
	})
}
