package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// inStore returns the names of all files below deploy/ in the store, those that are not objects included.
func (s *shell) inStore() (names []string) {
	s.t.Helper()
	err := filepath.WalkDir(s.path("store/deploy"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != ".corpus-lock" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// TestPublishOfATreeIsThatOfItsArtifact publishes a tree: the release has the bytes that corpus build gives, and a tree
// that is refused before or after it was packed leaves nothing in the store.
func TestPublishOfATreeIsThatOfItsArtifact(t *testing.T) {
	s := newStore(t)
	if err := os.MkdirAll(s.path("tree/states"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("tree/states/top.sls", "base:\n  '*': [app]\n")
	s.write("tree/states/app.sls", "a: test.nop\n")
	s.expect(0, "publish myapp 1.0 @tree --channel testing", "myapp/testing is 1.0") // a new project
	s.write("tree/more", "more")
	s.expect(0, "publish myapp 1.1 @tree --channel testing", "myapp/testing is 1.1")
	s.expect(0, "build @tree -o @app.tar.zst", "")
	s.expect(0, "publish myapp 1.1 @app.tar.zst", "published myapp 1.1")
	s.expect(0, "verify", "")

	before := s.inStore()
	s.expect(2, "publish myapp 1.0 @tree", "is published with digest")
	s.write("tree/key.pem", "-----BEGIN "+"PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n")
	if code := s.run("publish myapp 1.2 @tree"); code == 0 || !strings.Contains(s.err, "private key") {
		t.Errorf("a tree with a private key: exit code %d\n%s", code, s.err)
	}
	s.remove("tree/key.pem")
	s.write("tree/corpus.yaml", "name: myapp\nversion: \"7.0\"\n")
	s.expect(2, "publish myapp 1.2 @tree", "is version 7.0")
	if after := s.inStore(); !slices.Equal(after, before) {
		t.Errorf("refused trees left %v in a store with %v", after, before)
	}
	pipe := s.path("tree/pipe") // packing would refuse it
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	s.expect(2, "publish myapp 1.2 @tree", s.path("tree")+" is version 7.0")
	s.write("tree/corpus.yaml", "name: theirs\nbuilder: tree\n")
	s.expect(2, "publish myapp 1.2 @tree", "of the project theirs")
	s.remove("tree/corpus.yaml")
	s.expect(2, "publish myapp 1.2 @tree --channel testign", "nearly that of testing")
	s.remove("tree/pipe")
	s.write("tree/corpus.yaml", "name: myapp\nbuilder: tree\nversion: \"7.0\"\n")
	s.expect(0, "publish myapp 1.3 @tree", "published myapp 1.3")
	if !slices.ContainsFunc(s.inStore(), func(name string) bool {
		return strings.HasSuffix(name, ".1.3.tar.zst.provenance.json")
	}) {
		t.Errorf("the statements of the build were not published: %v", s.inStore())
	}
}

// TestPublishOfATreeSearchesOnce publishes a tree with a key that its recipe allows, which is not in the artifact: a
// second search, of the artifact, would refuse the key.
func TestPublishOfATreeSearchesOnce(t *testing.T) {
	s := newStore(t)
	if err := os.Mkdir(s.path("tree"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("tree/corpus.yaml", "leave_out: [corpus.yaml]\nallow_secrets: [{path: key.pem, reason: a test}]\n")
	s.write("tree/key.pem", "-----BEGIN "+"PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n")
	s.expect(0, "publish myapp 1.0 @tree", "published myapp 1.0")
	s.expect(0, "build @tree -o @app.tar.zst", "")
	if code := s.run("publish myapp 1.0 @app.tar.zst"); code == 0 || !strings.Contains(s.err, "private key") {
		t.Errorf("the artifact with its private key: exit code %d\n%s", code, s.err)
	}
}
