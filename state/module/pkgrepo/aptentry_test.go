package pkgrepo

import (
	"reflect"
	"testing"
)

func TestParseEntry(t *testing.T) {
	for line, want := range map[string]*entry{
		"deb http://example.com/debian stable main contrib": {kind: "deb", uri: "http://example.com/debian",
			suite: "stable", comps: []string{"main", "contrib"}},
		"  #  deb-src http://example.com/debian stable main # why": {kind: "deb-src", disabled: true,
			uri: "http://example.com/debian", suite: "stable", comps: []string{"main"}, comment: "why"},
		"deb [ arch=amd64  trusted=yes ] file:/srv ./": {kind: "deb",
			options: []option{{"arch", "amd64"}, {"trusted", "yes"}}, uri: "file:/srv", suite: "./", comps: []string{}},
		"deb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main": {kind: "deb",
			uri: "cdrom:[Debian GNU/Linux 12 _Bookworm_]/", suite: "bookworm", comps: []string{"main"}},
		"# a comment on deb files":   nil,
		"":                           nil,
		"deb":                        nil,
		"deb http://example.com":     nil,
		"rpm http://example.com a b": nil,
		"deb [arch=amd64 http://example.com stable": nil,
	} {
		got, ok := parseEntry(line)
		if ok != (want != nil) {
			t.Errorf("%q is an entry: %t", line, ok)
		} else if ok && !reflect.DeepEqual(got, *want) {
			t.Errorf("%q reads\n%+v, want\n%+v", line, got, *want)
		}
	}
}

func TestEntryText(t *testing.T) {
	for _, line := range []string{
		"deb http://example.com/debian stable main contrib",
		"# deb [arch=amd64,i386 signed-by=/k lang=en] http://example.com/debian stable main #why", "deb file:/srv ./",
	} {
		if e, ok := parseEntry(line); !ok || e.String() != line {
			t.Errorf("%q becomes %q", line, e)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add("deb [arch=amd64] http://example.com/debian stable main # x")
	f.Add("#deb cdrom:[a b]/ c d")
	f.Add("deb [] a b")
	f.Fuzz(func(t *testing.T, line string) {
		e, ok := parseEntry(line)
		if !ok {
			return
		}
		again, ok := parseEntry(e.String())
		if !ok || !e.same(again) && len(e.comps) > 0 {
			t.Errorf("%q is written as %q, which reads as %+v", line, e, again)
		}
	})
}

func TestDeb822(t *testing.T) {
	got := parseDeb822(`# all of it
Types: deb
URIs: http://example.com/ubuntu
Suites: noble noble-updates
Components: main
  universe
Architectures: amd64 i386
Signed-By: /usr/share/keyrings/ubuntu.gpg

Enabled: no
types: deb
uris: http://example.com/more
suites: ./
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
`)
	var lines []string
	for _, e := range got {
		lines = append(lines, e.String())
	}
	want := []string{
		"deb [arch=amd64,i386 signed-by=/usr/share/keyrings/ubuntu.gpg] http://example.com/ubuntu noble main universe",
		"deb [arch=amd64,i386 signed-by=/usr/share/keyrings/ubuntu.gpg] http://example.com/ubuntu noble-updates " +
			"main universe",
		"# deb http://example.com/more ./",
	}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("got\n%q, want\n%q", lines, want)
	}
}

func FuzzDeb822(f *testing.F) {
	f.Add("Types: deb\nURIs: x\nSuites: y\n z\n\n : \n\ta")
	f.Fuzz(func(_ *testing.T, text string) { parseDeb822(text) })
}
