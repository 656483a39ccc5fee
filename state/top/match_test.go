package top_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func webHost() *top.Target {
	return &top.Target{
		ID: "web1.example.com",
		Grains: value.NewMap("os", "Debian", "roles", value.Strings("web", "cache"), "ipv4",
			value.Strings("127.0.0.1", "10.1.2.3"),
			"disk", value.NewMap("sda", value.NewMap("kind", "ssd"))),
		Pillar: value.NewMap("site", "north", "ports", value.NewList(80, 443)),
		Nodegroups: value.NewMap("web", "web* and G@os:Debian", "all", value.Strings("N@web", "or", "db*"), "round",
			"N@round", "odd", 3),
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		kind, expression string
		want             bool
	}{
		{"glob", "web*.example.com", true},
		{"glob", "web?.example.org", false},
		{"pcre", `web\d+\.example`, true},
		{"pcre", `\d`, false}, // it has to match from the start
		{"list", "db1,web1.example.com", true},
		{"list", "db1, web1.example.com", false}, // blanks are part of a name
		{"grain", "os:Deb*", true},
		{"grain", "roles:cache", true},
		{"grain", "roles:db", false},
		{"grain", "disk:sda:kind:ssd", true},
		{"grain", "disk:sda:kind", true}, // a key is compared, too
		{"grain", "disk:sda:size", false},
		{"grain", "disk:*:kind:ssd", true},
		{"grain_pcre", "os:(Debian|Ubuntu)", true},
		{"pillar", "site:nor*", true},
		{"pillar_exact", "site:nor*", false},
		{"pillar_exact", "site:north", true},
		{"pillar_pcre", "site:^n", true},
		{"ipcidr", "10.1.0.0/16", true},
		{"ipcidr", "10.1.2.3", true},
		{"ipcidr", "10.2.0.0/16", false},
		{"nodegroup", "web", true},
		{"nodegroup", "all", true},
		{"compound", "G@os:Debian and not db*", true},
		{"compound", "( db* or web* ) and I@site:south", false},
		{"compound", "not G@os:RedHat and E@web.*", true},
		{"compound", "S@10.0.0.0/8 and L@web1.example.com,x", true},
		{"compound", "db* or web* and G@os:RedHat", false},
		{"compound", "P@os:Deb and J@site:n", true},
	} {
		got, err := webHost().Match(c.kind, c.expression)
		if err != nil || got != c.want {
			t.Errorf("%s %q: %v %v, want %v", c.kind, c.expression, got, err, c.want)
		}
	}
}

// TestInvalidTargetsAreRefused checks that the error for an invalid target names its invalid part.
func TestInvalidTargetsAreRefused(t *testing.T) {
	for _, c := range []struct{ kind, expression, want string }{
		{"glbo", "*", "glbo"},
		{"pcre", "web(", "web("},
		{"grain_pcre", "os:(", "("},
		{"compound", "web* and", "and"},
		{"compound", "( web*", "("},
		{"compound", "web* )", ")"},
		{"compound", "Q@x", "Q"},
		{"compound", "N@round", "round"},
		{"nodegroup", "odd", "odd"},
		{"ipcidr", "10.1.0.0/99", "10.1.0.0/99"},
	} {
		_, err := webHost().Match(c.kind, c.expression)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want an error that names %q", c.kind, c.expression, err, c.want)
		}
	}
}

func TestMatchDelimited(t *testing.T) {
	got, err := webHost().MatchDelimited("grain", "disk|sda|kind|ssd", "|")
	if err != nil || !got {
		t.Errorf("%v %v", got, err)
	}
}

// TestUnknownNodegroupMatchesNoHost compares with Salt, where such a word makes the whole expression match nothing.
func TestUnknownNodegroupMatchesNoHost(t *testing.T) {
	for _, c := range [][2]string{{"nodegroup", "wep"}, {"compound", "N@wep"}, {"compound", "web* or N@wep"},
		{"compound", "not N@wep"}} {
		host, said := webHost(), ""
		host.Warn = func(message string) { said = message }
		if got, err := host.Match(c[0], c[1]); got || err != nil {
			t.Errorf("%s %q: %v, %v", c[0], c[1], got, err)
		}
		want := "there is no nodegroup wep, so \"" + c[1] + "\" matches no host: did you mean"
		if !strings.HasPrefix(said, want) {
			t.Errorf("%s %q: the warning is %q", c[0], c[1], said)
		}
	}
}
