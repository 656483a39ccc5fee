package main

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
)

func TestKeysEncryptedWithAPassphrase(t *testing.T) {
	s := newShell(t)
	s.expect(2, "keys new --encrypt myapp", "standard input is not a terminal")
	s.env["CORPUS_PASSPHRASE"] = "correct horse"
	s.expect(0, "keys new --encrypt myapp", "made")
	if key := s.read("keys/myapp.key"); !strings.HasPrefix(key, "-----BEGIN AGE ENCRYPTED FILE-----") {
		t.Errorf("the key is written as %.40q", key)
	}
	s.expect(0, "keys ls", "encrypted")
	s.expect(0, "keys new", "made") // the others are not encrypted
	s.expect(0, "store init", "set up")
	s.expect(0, "project add myapp --key @keys/myapp.pub", "")
	s.artifact("one", "1")
	delete(s.env, "CORPUS_PASSPHRASE")
	s.expect(2, "publish myapp 1.0 @one.tar.zst", "a passphrase is needed")
	s.env["CORPUS_PASSPHRASE"] = "battery staple"
	s.expect(1, "publish myapp 1.0 @one.tar.zst", "nothing given opens it")
	delete(s.env, "CORPUS_PASSPHRASE")
	s.write("passphrase", "correct horse\n")
	s.env["CORPUS_PASSPHRASE_FILE"] = s.path("passphrase")
	s.expect(0, "publish myapp 1.0 @one.tar.zst", "published")
}

func TestKeysEncryptedToARecipient(t *testing.T) {
	s := newShell(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s.expect(2, "keys new --encrypt-to age1nonsense", "is not an age recipient")
	s.expect(0, "keys new --encrypt-to "+identity.Recipient().String(), "made")
	s.expect(1, "store init", "nothing given opens it")
	s.write("identity", identity.String()+"\n")
	s.env["CORPUS_AGE_IDENTITY_FILE"] = s.path("identity")
	s.expect(0, "store init", "set up")
	if strings.Contains(s.all.String(), identity.String()) {
		t.Error("the identity was printed")
	}
}

func TestKeysInTheEnvironment(t *testing.T) {
	s := newStore(t)
	s.expect(0, "keys new my-app", "made")
	s.expect(0, "project add my-app --key @keys/my-app.pub", "")
	s.artifact("one", "1")

	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	// A CI job without a directory of keys, with the digest of the root of trust.
	var init roots.InitResult
	other := newShell(t)
	other.expect(0, "keys new", "")
	other.json("store init", &init)
	ci := newShell(t)
	ci.dir, ci.env = s.dir, map[string]string{
		"CORPUS_STORE":         s.env["CORPUS_STORE"],
		"CORPUS_TRUST_ROOT":    s.path("keys/root.json"),
		"CORPUS_KEY_MY_APP":    s.read("keys/my-app.key"),
		"CORPUS_KEY_SNAPSHOT":  base64.StdEncoding.EncodeToString([]byte(s.read("keys/snapshot.key"))),
		"CORPUS_KEY_TIMESTAMP": s.read("keys/timestamp.key"),
	}
	ci.expect(0, "publish my-app 1.0 @one.tar.zst --channel testing", "published")
	ci.expect(0, "ls", "my-app/testing")
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("the command left the files %v (%v)", left, err)
	}
	ci.env["CORPUS_TRUST_ROOT"] = string(init.Digest)
	ci.expect(4, "ls", "pin check failed")

	for name, value := range map[string]string{
		"interrupted":  s.read("keys/my-app.key")[:60],
		"a public key": s.read("keys/my-app.pub"),
		"nonsense":     "hello",
		"another's":    s.read("keys/targets.key"),
	} {
		ci.env["CORPUS_TRUST_ROOT"], ci.env["CORPUS_KEY_MY_APP"] = s.path("keys/root.json"), value
		if code := ci.run("promote my-app testing production"); code == 0 {
			t.Errorf("a promotion with a key that is %s succeeded", name)
		}
		if !strings.Contains(ci.err, "CORPUS_KEY_MY_APP") {
			t.Errorf("with a key that is %s, the error does not name the variable:\n%s", name, ci.err)
		}
	}
}

// privateParts returns the secret parts of a key: the lines of its PEM block.
func privateParts(pem string) []string {
	var parts []string
	for line := range strings.Lines(pem) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "-----") {
			parts = append(parts, line)
		}
	}
	return parts
}

func TestPrivateKeysAreNeverPrinted(t *testing.T) {
	s := newShell(t)
	s.env["CORPUS_PASSPHRASE"] = "correct horse"
	s.expect(0, "keys new -v", "made")
	s.expect(0, "store init -v", "set up")
	s.artifact("one", "1")
	var secrets []string
	for _, line := range []string{
		"publish myapp 1.0 @one.tar.zst --channel testing -v", "keys ls --json", "root show -v",
		"keys rotate timestamp -v --json",
		"export targets -o @t.draft -v", "sign @t.draft -v --json", "import @t.draft", "refresh -v --json",
	} {
		if code := s.run(line); code != 0 {
			t.Fatalf("corpus %s: exit code %d\n%s", line, code, s.err)
		}
	}
	for _, file := range []string{"root", "targets", "snapshot", "timestamp", "myapp"} {
		secrets = append(secrets, privateParts(s.read("keys/"+file+".key"))...)
	}
	// Damaged keys must not be quoted either.
	key := s.read("keys/myapp.key")
	for _, damaged := range []string{key[:len(key)-40], strings.Replace(key, "PRIVATE", "PUBLIC", 2),
		strings.ReplaceAll(key, "-----", ""), base64.StdEncoding.EncodeToString([]byte(key))[:40]} {
		s.write("keys/myapp.key", damaged)
		if code := s.run("promote myapp testing production -v"); code == 0 {
			t.Errorf("a promotion with a damaged key succeeded: %.30q", damaged)
		}
	}
	draft := s.read("t.draft")
	for _, secret := range append(secrets, "correct horse") {
		if strings.Contains(s.all.String(), secret) || strings.Contains(draft, secret) {
			t.Error("a private key or a passphrase was printed")
		}
	}
}

func TestKeysAreListedWithoutOpeningThem(t *testing.T) {
	s := newShell(t)
	s.expect(0, "keys new --root-keys 2", "made")
	s.move("elsewhere", "keys/root-2.key")
	var list []keyring.Listed
	s.json("keys ls", &list)
	kinds := map[string]int{}
	for _, k := range list {
		kinds[k.Role+" "+k.Kind]++
	}
	if len(list) != 5 || kinds["root open"] != 1 || kinds["root public"] != 1 || kinds["timestamp open"] != 1 {
		t.Errorf("keys ls prints %v", list)
	}
	delete(s.env, "CORPUS_KEYS")
	s.expect(2, "keys ls", "no keys were given")
	s.expect(2, "keys use root nonsense --keys @keys", "is not a reference to a key")
}

// TestRotationKeepsEncryptionOfKeys checks that a rotation encrypts the new key like the old one.
func TestRotationKeepsEncryptionOfKeys(t *testing.T) {
	artifacttest.Long(t)
	const sealed = "-----BEGIN AGE ENCRYPTED FILE-----"
	t.Run("passphrase", func(t *testing.T) {
		s := newShell(t)
		s.env["CORPUS_PASSPHRASE"] = "correct horse"
		s.expect(0, "keys new --encrypt", "made")
		s.expect(0, "store init", "set up")
		s.expect(0, "keys rotate timestamp", "signed with")
		if key := s.read("keys/timestamp.key"); !strings.HasPrefix(key, sealed) {
			t.Errorf("after rotating, the key is written as %.40q", key)
		}
		s.expect(0, "refresh", "renewed")
		s.env["CORPUS_PASSPHRASE"] = "battery staple"
		s.expect(1, "keys rotate snapshot", "nothing given opens it")
		if _, err := os.Stat(s.path("keys/next/snapshot.key")); err == nil {
			t.Error("a key was made for a refused rotation")
		}
	})
	t.Run("recipients", func(t *testing.T) {
		s := newShell(t)
		one, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		two, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		s.write("identity", one.String()+"\n")
		s.env["CORPUS_AGE_IDENTITY_FILE"] = s.path("identity")
		s.expect(0, "keys new --encrypt-to "+one.Recipient().String()+" --encrypt-to "+two.Recipient().String(), "made")
		s.expect(0, "store init", "set up")
		s.expect(1, "keys rotate timestamp", "encrypted to 2 recipients, and 1 of them are known")
		s.write("identity", one.String()+"\n"+two.String()+"\n")
		s.expect(0, "keys rotate timestamp", "signed with")
		for _, identity := range []string{one.String(), two.String()} {
			s.write("identity", identity+"\n")
			s.expect(0, "refresh", "renewed")
		}
	})
	t.Run("kms", func(t *testing.T) {
		s := newStore(t)
		s.write("keys/timestamp.key", "awskms:arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab\n")
		s.expect(1, "keys rotate timestamp", "corpus keys use timestamp awskms:ARN")
	})
}

// TestReadablePrivateKeysAreWarnedOf checks that a warning is printed, once for each key, if other users may read it.
func TestReadablePrivateKeysAreWarnedOf(t *testing.T) {
	s := newStore(t)
	s.expect(0, "refresh", "renewed")
	if strings.Contains(s.err, "warning") {
		t.Errorf("an unnecessary warning: %s", s.err)
	}
	if err := os.Chmod(s.path("keys/timestamp.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"refresh", "keys ls"} {
		s.expect(0, line, "")
		if n := strings.Count(s.err, "may read the private key "+s.path("keys/timestamp.key")); n != 1 {
			t.Errorf("corpus %s warns %d times:\n%s", line, n, s.err)
		}
	}
}

// TestKeysOfAnotherStoreAreRefused checks that no command changes the key directory of another store.
func TestKeysOfAnotherStoreAreRefused(t *testing.T) {
	a, b := newStore(t), newStore(t)
	a.artifact("one", "1")
	a.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	b.artifact("one", "1")
	b.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	names := strings.Join(a.names("store/metadata"), " ")
	root := b.read("keys/root.json")
	b.env["CORPUS_STORE"] = a.env["CORPUS_STORE"]
	for _, line := range []string{
		"root change --renew", "root change --threshold root=1 --renew --at-once", "keys rotate root",
		"keys rotate timestamp", "keys rotate targets", "keys rotate myapp",
		"refresh", "refresh --rebuild", "publish myapp 2.0 @one.tar.zst", "promote myapp testing production",
		"project add other --key @keys/myapp.pub",
		"yank myapp 1.0", "gc", "export root -o @x.draft",
	} {
		b.expect(4, line, "belong to")
	}
	b.expect(2, "store init", "")
	if now := strings.Join(a.names("store/metadata"), " "); now != names {
		t.Errorf("the other store has %s, and had %s before", now, names)
	}
	if b.read("keys/root.json") != root {
		t.Error("root.json was replaced")
	}
	a.expect(0, "verify", "verified 1 artifact")
}
