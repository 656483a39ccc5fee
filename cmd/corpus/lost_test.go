package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestLostTimestampIsRebuilt checks that a store that lost timestamp.json is not set up again: every command proposes
// the rebuild, which keeps all projects and uses a higher version than any that a host may have seen.
func TestLostTimestampIsRebuilt(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.expect(0, "publish other 1.0 @one.tar.zst --channel testing", "")
	for range 3 {
		s.expect(0, "refresh", "")
	}
	before := s.timestampVersion()
	s.remove("store/metadata/timestamp.json")
	s.copy("keys/root.json", "seen-by-nobody/root.json")
	for _, line := range []string{"ls", "verify", "refresh", "publish myapp 1.1 @one.tar.zst"} {
		s.expect(5, line, "corpus refresh --rebuild")
		if strings.Contains(s.out+s.err, "store init") {
			t.Errorf("corpus %s recommends store init over a full store:\n%s", line, s.err)
		}
	}
	names := s.names("store/metadata")
	s.expect(2, "store init", "refresh --rebuild")
	s.expect(0, "keys new --keys @fresh", "made")
	s.expect(2, "store init --keys @fresh", "set up before")
	if now := s.names("store/metadata"); strings.Join(now, " ") != strings.Join(names, " ") {
		t.Errorf("store init changed the store: %v, before %v", now, names)
	}
	// Another machine with the online keys, which has not read this store's timestamps.
	for _, file := range []string{"snapshot.key", "timestamp.key", "root.json"} {
		s.copy("keys/"+file, "online/"+file)
	}
	s.expect(0, "refresh --rebuild --keys @online", "myapp")
	if after := s.timestampVersion(); after <= before {
		t.Errorf("the timestamp has version %d, but hosts have read %d", after, before)
	}
	s.expect(0, "publish myapp 1.1 @one.tar.zst --channel testing", "myapp/testing is 1.1")
	s.expect(0, "ls", "other/testing")
}

func (s *shell) timestampVersion() int64 {
	s.t.Helper()
	var file struct {
		Signed struct{ Version int64 }
	}
	if err := json.Unmarshal([]byte(s.read("store/metadata/timestamp.json")), &file); err != nil {
		s.t.Fatal(err)
	}
	return file.Signed.Version
}

func (s *shell) remove(name string) {
	s.t.Helper()
	if err := os.Remove(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shell) names(dir string) (names []string) {
	s.t.Helper()
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestInitKeepsAnotherStoresRoot checks that the keys of one store do not set up another, and its root.json stays.
func TestInitKeepsAnotherStoresRoot(t *testing.T) {
	s := newStore(t)
	root := s.read("keys/root.json")
	s.expect(2, "store init --store file://@second", "another directory for --keys")
	s.expect(0, "keys new --keys @fresh", "made")
	s.copy("keys/root.json", "fresh/root.json")
	s.expect(2, "store init --store file://@second --keys @fresh", "root of another store")
	if s.read("keys/root.json") != root || s.read("fresh/root.json") != root {
		t.Error("a refused init replaced root.json")
	}
}

// TestInterruptedInitIsCompleted checks that a second init completes an interrupted one.
func TestInterruptedInitIsCompleted(t *testing.T) {
	s := newStore(t)
	s.remove("store/metadata/timestamp.json")
	for _, name := range []string{"root.json", "seen/pinned", "seen/root.json"} {
		s.remove("keys/" + name)
	}
	s.expect(0, "store init", "set up")
	s.expect(0, "verify", "verified 0 artifacts")
}

// TestCachedMetadataDoesNotReplaceLostFiles checks that the copies of a publisher do not replace files that the store
// has lost: ls and verify fail like a new host, and refresh makes a new snapshot and names the other lost files, while
// it continues to sign all other roles.
func TestCachedMetadataDoesNotReplaceLostFiles(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.expect(0, "publish other 1.0 @one.tar.zst --channel testing", "")
	s.remove("store/metadata/" + s.newest("SNAPSHOT"))
	for _, line := range []string{"ls", "verify"} {
		s.expect(5, line, "corpus refresh --rebuild")
	}
	s.expect(0, "refresh", "renewed")
	s.expect(0, "verify", "verified 2 artifacts")
	s.remove("store/metadata/1.myapp~head.json")
	before := s.timestampVersion()
	s.expect(3, "refresh", "myapp~head")
	if after := s.timestampVersion(); !strings.Contains(s.out, "NOT RENEWED: the store has lost its file") ||
		after <= before {
		t.Errorf("refresh signed timestamp %d after %d, and printed:\n%s", after, before, s.out)
	}
	s.expect(0, "refresh --rebuild", "myapp~head")
	s.expect(0, "refresh", "")
	s.expect(0, "verify", "verified 2 artifacts")
	s.write("store/metadata/1.myapp~head.json", "{}")
	s.expect(3, "refresh", "myapp~head")
	if !strings.Contains(s.out, "NOT RENEWED: its file in the store is damaged") {
		t.Errorf("refresh printed:\n%s", s.out)
	}
	s.expect(0, "refresh --rebuild", "myapp~head")
	s.expect(0, "refresh", "")
}
