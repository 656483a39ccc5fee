package main

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
)

func TestRootWithSeveralSignersFromInit(t *testing.T) {
	s := newShell(t)
	s.expect(0, "keys new --root-keys 3", "made")
	s.move("bob", "keys/root-2.key")
	s.move("eve", "keys/root-3.key")
	// One person alone cannot set the store up.
	s.expect(2, "store init", "root requires 2 of 3 keys")
	s.expect(0, "store init --draft @root.draft", "1 more needed")
	s.expect(4, "import @root.draft", "signature check failed")
	s.expect(0, "sign @root.draft --key @bob/root-2.key", "corpus import")
	s.expect(0, "import @root.draft", "set up")
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "myapp/testing is 1.0")

	// Bob's key is removed: two of the three have to sign, and the new root is then valid for readers.
	s.expect(2, "root change --remove-key root=@keys/root-2.pub", "--draft")
	s.expect(0, "root change --remove-key root=@keys/root-2.pub --draft @next.draft", "root 2")
	s.expect(0, "sign @next.draft --show", "1 more needed")
	s.expect(0, "sign @next.draft --key @eve/root-3.key", "corpus import")
	s.expect(0, "import @next.draft", "root 2 is in place")
	s.expect(0, "ls", "myapp/testing")
	// The draft can only be imported once.
	s.expect(2, "import @next.draft", "root 2")
	// Bob's signature no longer counts.
	s.expect(0, "export root -o @third.draft", "1 more needed")
	s.expect(2, "sign @third.draft --key @bob/root-2.key", "none that may sign root")
}

func TestProjectThatTwoHaveToSign(t *testing.T) {
	s := newStore(t)
	s.expect(0, "keys new --keys @ann myapp", "made")
	s.expect(0, "keys new --keys @bob myapp", "made")
	s.expect(2, "project add myapp --key @ann/myapp.pub --threshold 2", "2 would have to sign")
	s.expect(0, "project add myapp --key @ann/myapp.pub --key @bob/myapp.pub --threshold 2", "may publish myapp")
	for _, file := range []string{"snapshot.key", "timestamp.key", "root.json"} {
		s.copy("keys/"+file, "ann/"+file)
	}
	s.artifact("one", "1")
	s.expect(2, "publish myapp 1.0 @one.tar.zst --channel testing --keys @ann", "myapp requires 2 of 2 keys")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing --keys @ann --draft @myapp.draft",
		"myapp/testing is 1.0")
	s.expect(4, "import @myapp.draft --keys @ann", "signature check failed")
	s.expect(0, "sign @myapp.draft --keys @bob", "corpus import")
	s.expect(0, "import @myapp.draft --keys @ann", "myapp 1 is in force")
	s.expect(0, "ls", "myapp/testing")

	// A draft is refused after another version was committed, with any signatures.
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel staging --keys @ann --draft @a.draft", "")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel production --keys @ann --draft @b.draft", "")
	s.expect(0, "sign @a.draft --keys @bob", "")
	s.expect(0, "sign @b.draft --keys @bob", "")
	s.expect(0, "import @a.draft --keys @ann", "myapp 2 is in force")
	s.expect(2, "import @b.draft --keys @ann", "make the draft again")
}

func TestSignersSeeTheSameContent(t *testing.T) {
	s := newShell(t)
	s.expect(0, "keys new --root-keys 2", "made")
	s.expect(0, "store init", "set up")
	s.expect(0, "export targets -o @targets.draft", "targets 2")
	var before, after publish.Summary
	s.json("sign @targets.draft --show", &before)
	s.json("sign @targets.draft", &after)
	if before.Content != after.Content || before.Content == "" {
		t.Errorf("the content is %s before signing and %s after", before.Content, after.Content)
	}
	// A change to a draft invalidates its signatures.
	draft := s.read("targets.draft")
	s.write("targets.draft", strings.Replace(draft, `"version": 2`, `"version": 3`, 1))
	s.expect(4, "import @targets.draft", "signature check failed")
	s.write("targets.draft", "{}")
	s.expect(2, "sign @targets.draft", "not a draft")
	s.expect(2, "export snapshot -o @x.draft", "needs no draft")
}

func TestLostKeyOfAProject(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.expect(2, "project revoke myapp --key @keys/myapp.pub", "add another key first")
	s.expect(0, "keys new --keys @ann myapp", "made")
	s.expect(0, "project add myapp --key @ann/myapp.pub", "")
	s.expect(2, "project revoke myapp --key @keys/myapp.pub", "nothing was written, since hosts would refuse myapp")
	s.expect(0, "ls", "myapp/testing")
	s.expect(0, "project revoke myapp --key @keys/myapp.pub --at-once", "hosts refuse myapp until")
	s.expect(4, "ls", "signature check failed")
	s.expect(4, "publish myapp 1.0 @one.tar.zst --channel testing", "corpus export")
	// Ann reviews the content and signs it.
	s.expect(0, "export myapp -o @myapp.draft", "no key that may sign myapp has signed this")
	s.expect(0, "sign @myapp.draft --keys @ann", "myapp/testing is 1.0")
	s.expect(0, "import @myapp.draft", "in force")
	s.expect(0, "ls", "myapp/testing")

	// If another key is available, revoking signs again in the same step.
	s.expect(0, "keys new --keys @bob myapp", "made")
	s.expect(0, "project add myapp --key @bob/myapp.pub", "")
	s.copy("bob/myapp.key", "keys/myapp.key")
	var revoked projects.Revoked
	s.json("project revoke myapp --key @ann/myapp.pub", &revoked)
	if !revoked.Signed || len(revoked.Keys) != 1 {
		t.Errorf("revoking returns %+v, want one key and the project signed", revoked)
	}
	s.expect(0, "verify", "verified 1 artifact")
	s.expect(2, "project revoke myapp --key ffff", "no key of myapp has an ID that begins with")
}
