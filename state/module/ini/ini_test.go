package ini

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "ini",
		Functions: func(*statetest.Host) module.Table { return Functions() },
		Cases:     statetest.Load(t, "../../../testdata/modules/ini.yaml"),
	})
}

// FuzzEditing checks that an option that was set is found, and that nothing else changes.
func FuzzEditing(f *testing.F) {
	f.Add("[a]\nb = c\n  d\n#e=f\n[g]\n", "a", "e", "x")
	f.Add("b=c\n", "", "b", "d")
	f.Fuzz(func(t *testing.T, text, section, key, v string) {
		for _, s := range []string{section, key, v} {
			if strings.ContainsAny(s, "\r\n[]#;=") || strings.TrimSpace(s) != s {
				return
			}
		}
		if key == "" || strings.ContainsRune(text, '\r') {
			return
		}
		before := parse(text, "=")
		if before.String() != strings.TrimSuffix(text, "\n")+"\n" && text != "" {
			t.Fatalf("%q became %q", text, before.String())
		}
		d := parse(text, "=")
		if section != "" && !d.has(section) {
			d.add(section)
		}
		d.set(section, key, v)
		after := parse(d.String(), "=")
		if got, ok := after.get(section, key); !ok || got != v {
			t.Fatalf("%q in %q is %q in %q", key, section, got, d.String())
		}
		for _, l := range before.lines {
			if l.kind != option || l.section == section && l.key == key {
				continue
			}
			was, _ := before.get(l.section, l.key)
			if got, _ := after.get(l.section, l.key); got != was {
				t.Errorf("%q in %q was %q and is %q in %q", l.key, l.section, was, got, d.String())
			}
		}
	})
}
