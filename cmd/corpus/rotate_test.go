package main

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
)

func TestEveryKeyCanBeRotated(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	first := s.read("keys/root.json")
	for _, role := range []string{"timestamp", "snapshot", "targets", "root", "myapp"} {
		before := s.read("keys/" + role + ".pub")
		var done roots.Rotated
		s.json("keys rotate "+role, &done)
		if len(done.New) != 1 || len(done.Old) != 1 || done.New[0] == done.Old[0] {
			t.Errorf("rotating %s returns %+v", role, done)
		}
		if s.read("keys/"+role+".pub") == before {
			t.Errorf("%s has the same key after rotating", role)
		}
		// Hosts that trust the first root accept the store, and the old key is kept in a separate directory.
		s.write("first.json", first)
		s.expect(0, "verify --trust-root @first.json", "verified 1 artifact")
		s.copy("keys/old/"+role+"."+done.Old[0][:8]+".key", "stolen/"+role+".key")
	}
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel production", "")
	// An attacker with the old keys has no access any more.
	s.copy("keys/root.json", "stolen/root.json")
	s.expect(2, "promote myapp testing staging --keys @stolen", "names other keys")
	s.expect(2, "root change --renew --keys @stolen", "root may not be signed with key")
}

func TestRootChangesAreChecked(t *testing.T) {
	s := newStore(t)
	s.expect(2, "root change", "would stay unchanged")
	s.expect(2, "root change --threshold rot=2", "does not name a role")
	s.expect(2, "root change --threshold root=many", "a number was expected")
	s.expect(2, "root change --threshold root=2", "a threshold of 2")
	s.expect(2, "root change --remove-key timestamp=@keys/timestamp.pub", "0 keys")
	s.expect(0, "keys new --keys @bob", "made")
	s.expect(0, "root change --add-key root=@bob/root.pub --threshold root=2 --draft @root.draft", "1 more needed")
	s.expect(0, "sign @root.draft --keys @bob", "corpus import")
	s.expect(0, "import @root.draft", "root 2 is in place")
	s.expect(0, "root show", "2 of")
	s.expect(2, "root change --renew", "root requires 2 of 2 keys")
}

func TestRefreshRequiresOnlyOnlineKeys(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	for _, file := range []string{"snapshot.key", "timestamp.key", "root.json"} {
		s.copy("keys/"+file, "online/"+file)
	}
	s.expect(0, "refresh --keys @online", "timestamp")
	// Targets and myapp are valid for 90 days; another person has to sign them.
	s.expect(3, "refresh --keys @online --within 100", "NOT RENEWED")
	var list []refresh.Standing
	s.json("refresh --keys @online --within 100", &list)
	left := []string{}
	for _, standing := range list {
		if standing.Left {
			left = append(left, standing.Role)
			if standing.Expires.IsZero() || standing.Why == "" {
				t.Errorf("%+v lacks the expiry or the reason why it was not renewed", standing)
			}
		}
	}
	if strings.Join(left, " ") != "targets myapp" {
		t.Errorf("the roles that were not renewed are %v, want targets and myapp", left)
	}
	s.expect(0, "refresh --within 100", "renewed")
	s.expect(0, "verify", "verified 1 artifact")
	s.move("elsewhere", "online/timestamp.key")
	s.expect(2, "refresh --keys @online", "timestamp requires 1 of 1 keys")
}

func TestWithdrawnVersionIsListed(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.expect(2, "yank myapp 2.0", "no such version")
	s.expect(0, "yank myapp 1.0 --reason leaks", "myapp/testing still points at it")
	s.expect(0, "ls", "leaks")
	s.expect(4, "promote myapp testing production", "withdrawn")
	s.expect(4, "publish myapp 1.0 @one.tar.zst --channel staging", "--undo")
	s.expect(0, "yank myapp 1.0 --undo", "no longer withdrawn")
	s.expect(0, "promote myapp testing production", "myapp/production is 1.0")
	if s.run("ls"); strings.Contains(s.out, "withdrawn") {
		t.Errorf("ls still prints withdrawn:\n%s", s.out)
	}
	s.expect(5, "yank other 1.0", "no such project")
}
