package sshauth

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
)

// FuzzAuthorizedKeys adds a key to arbitrary files and removes it. The lines of other keys must not change.
func FuzzAuthorizedKeys(f *testing.F) {
	f.Add("# c\n\nno-pty ssh-rsa AAAA a\nssh-rsa AAAB b\n", "x")
	f.Add("ssh-rsa AAAA a\nrestrict ssh-rsa AAAA b", "")
	f.Fuzz(func(t *testing.T, text, comment string) {
		k := sshkey.Key{Kind: "ssh-rsa", Text: "AAAA", Comment: strings.Join(strings.Fields(comment), " ")}
		before := parseFile(text)
		put := before.with([]sshkey.Key{k}, nil)
		after := parseFile(put)
		if word := after.differs(k); word != "" {
			t.Errorf("%q is %s in %q", k, word, put)
		}
		gone := parseFile(after.with(nil, map[string]bool{"AAAA": true}))
		if word := gone.differs(k); word != added {
			t.Errorf("%q is still in %q", k, gone.lines)
		}
		if want := len(before.lines) - len(before.at["AAAA"]); len(gone.lines) != want && text != "" {
			t.Errorf("%d lines are left of %q, want %d", len(gone.lines), text, want)
		}
	})
}
