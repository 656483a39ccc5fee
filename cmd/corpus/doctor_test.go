package main

import (
	"os"
	"testing"
)

// TestDoctorFindsKeysThatDoNotWork damages, opens and removes private keys.
func TestDoctorFindsKeysThatDoNotWork(t *testing.T) {
	s := newStore(t)
	s.expect(0, "doctor", "4 private keys in")
	s.write("keys/snapshot.key", "garbage\n")
	s.write("keys/targets.key", "")
	s.expect(3, "doctor", "snapshot.key: it is neither PEM")
	s.expect(3, "doctor", "corpus keys rotate targets")
	for _, name := range []string{"snapshot", "targets"} {
		if err := os.Remove(s.path("keys/" + name + ".key")); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(0, "doctor", "no key of snapshot in")
	if err := os.Mkdir(s.path("keys/snapshot.key"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.expect(3, "doctor", "it is not a regular file")
	if err := os.Chmod(s.path("keys/root.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.expect(3, "doctor", "corpus keys rotate root")
}

// TestDoctorNamesTheCureOfALostTimestamp runs the command of doctor's cure.
func TestDoctorNamesTheCureOfALostTimestamp(t *testing.T) {
	s := newStore(t)
	if err := os.Remove(s.path("store/metadata/timestamp.json")); err != nil {
		t.Fatal(err)
	}
	s.expect(3, "doctor", "corpus refresh --rebuild")
	s.expect(0, "refresh --rebuild", "made")
	s.expect(0, "doctor", "0 failed")
	s.write("store/metadata/timestamp.json", "{")
	s.expect(3, "doctor", "skipped  expiry")
}
