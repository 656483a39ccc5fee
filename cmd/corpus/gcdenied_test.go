package main

import (
	"os"
	"testing"
)

// TestDeniedGarbageCollection checks that gc where it may not write ends as refresh there, also if nothing has to be
// removed.
func TestDeniedGarbageCollection(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("this test needs a user other than root: root may write everywhere")
	}
	s := newStore(t)
	s.artifact("one", "one")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	deploy := s.path("store/deploy")
	if err := os.Chmod(deploy, 0o555); err != nil {
		t.Fatal(err)
	}
	s.expect(2, "gc", "gc cannot remove objects")
	s.expect(0, "gc --dry-run", "")
	if err := os.Chmod(deploy, 0o755); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "gc", "removed")
}
