package alias

import (
	"strings"
	"testing"
)

// FuzzAliases sets and removes an alias in arbitrary files. All other aliases must stay.
func FuzzAliases(f *testing.F) {
	f.Add("# c\nroot: you,\n  others # x\n\npostmaster:root\n", "root", "a, b")
	f.Add(" : x\n:\nnone\n\t\n  more\nroot\t:\t|\"prog # x\"", "root", "me")
	f.Fuzz(func(t *testing.T, text, name, target string) {
		name, target = strings.TrimSpace(name), strings.TrimSpace(target)
		e := edit{Name: name}
		if e.Valid() != nil || target == "" || strings.ContainsAny(name+target, "#\r\n\x00") {
			return
		}
		before := parse(text)
		after := parse(before.with(name, target))
		if now := after.find(name); now == nil || now.target != target {
			t.Fatalf("%s has the target %+v in %q", name, now, before.with(name, target))
		}
		for _, e := range before {
			if e.name != "" && e.name != name &&
				(after.find(e.name) == nil || after.find(e.name).target != before.find(e.name).target) {
				t.Errorf("%q lost its target in %q", e.name, before.with(name, target))
			}
		}
		if gone := parse(before.with(name, "")); gone.find(name) != nil {
			t.Errorf("%s is still in %q", name, before.with(name, ""))
		}
	})
}
