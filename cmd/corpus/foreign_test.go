package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestReadersNameTheWrongStore checks that the error for keys or a root of another store says so, and does not suspect
// an attack.
func TestReadersNameTheWrongStore(t *testing.T) {
	a, b := newStore(t), newStore(t)
	a.expect(0, "root change --renew", "root 2")
	own := a.env["CORPUS_STORE"]
	for _, at := range []string{"the first root", "a later root"} {
		a.env["CORPUS_STORE"] = b.env["CORPUS_STORE"]
		for _, line := range []string{"ls", "verify", "root show"} {
			if at == "a later root" {
				line += " --trust-root @store/metadata/2.root.json"
			}
			a.expect(4, line, "this store is not the one these keys belong to")
			if !strings.Contains(a.err, "hint: give the --store that these keys") {
				t.Errorf("corpus %s with %s of another store prints\n%s", line, at, a.err)
			}
		}
	}
	a.env["CORPUS_STORE"] = own
	a.expect(0, "ls", "")
}

// TestFileThatIsNotARootIsReported checks that the error for a file that is not a root names the file, as a mistake of
// the user.
func TestFileThatIsNotARootIsReported(t *testing.T) {
	s := newStore(t)
	for _, file := range []string{"root.pub", "targets.key"} {
		s.expect(2, "ls --trust-root @keys/"+file, "keys/"+file+" is a key and not a root of trust")
	}
	s.write("empty", "")
	s.expect(2, "verify --trust-root @empty", "empty is not a root of trust")
	if !strings.Contains(s.err, "keys/root.json") {
		t.Errorf("the hint does not describe the expected file:\n%s", s.err)
	}
}

// TestWrongRootIsNotPinnedByAPublisher checks that a publisher that was given the root of another store can continue
// with the right one.
func TestWrongRootIsNotPinnedByAPublisher(t *testing.T) {
	a, b := newStore(t), newStore(t)
	for _, name := range []string{"snapshot", "timestamp"} {
		a.copy("keys/"+name+".key", "online/"+name+".key")
		a.copy("keys/"+name+".pub", "online/"+name+".pub")
	}
	a.expect(4, "refresh --keys @online --trust-root "+b.path("keys/root.json"), "belong to")
	if _, err := os.Stat(a.path("online/seen/root.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the root of another store was pinned: %v", err)
	}
	a.expect(0, "refresh --keys @online --trust-root @keys/root.json", "renewed")
}
