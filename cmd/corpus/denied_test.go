package main

import (
	"os"
	"testing"
)

// TestDeniedRefreshIsNotRepeated checks that a store that denies writes has another exit code than one that cannot be
// reached: corpus-refresh@.service repeats only the latter.
func TestDeniedRefreshIsNotRepeated(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("this test needs a user other than root: root may write everywhere")
	}
	s := newStore(t)
	metadata := s.path("store/metadata")
	if err := os.Chmod(metadata, 0o555); err != nil {
		t.Fatal(err)
	}
	s.expect(2, "refresh", "this user must be allowed to write in")
	s.expect(2, "refresh --rebuild", "this user must be allowed to write in")
	if err := os.Chmod(metadata, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.path("store"), s.path("away")); err != nil {
		t.Fatal(err)
	}
	s.expect(5, "refresh", "")
}
