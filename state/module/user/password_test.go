package user

import (
	"strings"
	"testing"
)

func TestMatches(t *testing.T) {
	for _, hash := range []string{
		"$6$saltsalt$/dpv42BvGInVKxDULxBMfXE6CN.oHtXdmTeHWMcv5rsd81TjdKcroane5LphAqgVenp/4K1qV/7eYEdl4XS9O/",
		"$6$rounds=1234$saltsalt$fHIQlI1ibGxLG2WQ787NbEHYGNucNKji.PJABjwuX1ch8TYTWMGawG0bC4lgffryE8t4JV9KD87211dhjpY5a.",
		"$5$saltsalt$jbxAgW5X5LNk4yh.NmUXL1XLS9OoRHueeuIinWYHZ9D",
		"$1$saltsalt$DoPDqEvtl7sTRDfUfLChZ1",
		"$2b$04$abcdefghijklmnopqrstuuFuhxWRTXIsURoluSTZ1N4tYaWGn9oOi",
		"$y$j75$F5Jx5fExrKuPp53xLKQ..1$rMa936ZdBPH1McRD7oABQx6t.j/gf/kJ/kCyIVIc.f2",
	} {
		if !matches("opensesame", hash) {
			t.Errorf("%s does not match opensesame", hash)
		}
		if matches("closesesame", hash) || matches("", hash) {
			t.Errorf("%s matches another password", hash)
		}
	}
	for _, hash := range []string{"", "!", "*", "opensesame", "$", "$6$", "$6$rounds=1$a$b", "$6$rounds=x$a$b", "$2b$",
		"$y$", "$y$j9T$", "$9$a$b"} {
		if matches("opensesame", hash) {
			t.Errorf("%q matches opensesame", hash)
		}
	}
}

func TestNewHash(t *testing.T) {
	p := &present{Password: "opensesame", HashPassword: true}
	one, other := p.hash(), p.hash()
	if !p.has(one) || !p.has(other) || one == other || !strings.HasPrefix(one, "$6$") {
		t.Errorf("hashes are %s and %s", one, other)
	}
}

// FuzzMatches parses arbitrary password fields of /etc/shadow.
func FuzzMatches(f *testing.F) {
	for _, hash := range []string{"$6$a$b", "$5$rounds=1000$$", "$1$", "$2a$04$x", "$y$j75$a$b", "$$$$"} {
		f.Add(hash)
	}
	f.Fuzz(func(t *testing.T, hash string) {
		// Skip hashes with many rounds, which take too long.
		if strings.Contains(hash, "rounds=") || strings.HasPrefix(hash, "$2") || strings.HasPrefix(hash, "$y$") {
			return
		}
		if matches("a password nobody has", hash) {
			t.Errorf("%q matches", hash)
		}
	})
}
