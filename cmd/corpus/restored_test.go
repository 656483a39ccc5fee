package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// TestRestoredStoreAsDocumented restores a whole store from an older backup and runs the commands of docs/trust.md, as
// the last publisher and as a publisher that has read nothing since. Hosts that have read the newer store and new hosts
// accept the result.
func TestRestoredStoreAsDocumented(t *testing.T) {
	for event, version := range map[string]string{"restored": "1.1", "forgotten": "1.2"} {
		t.Run(event, func(t *testing.T) {
			commands := documentedRecovery(t)[[2]string{"store", event}]
			if len(commands) == 0 {
				t.Fatal("docs/trust.md has no commands for this event")
			}
			s := restored(t, event == "forgotten")
			old := s.env["HOST"]
			if err := s.sees(old, "myapp/testing", "1.1"); err == nil {
				t.Error("a host accepts the restored store")
			}
			for _, command := range commands {
				words := strings.Fields(strings.ReplaceAll(command, "s3://bucket/prefix", s.env["CORPUS_STORE"]))
				s.expect(0, strings.Join(words[1:], " "), "")
			}
			s.expect(0, "verify", "verified")
			for kind, dir := range map[string]string{"an old host": old, "a new host": s.host()} {
				for channel, want := range map[string]string{"myapp/testing": version, "other/testing": "1.0"} {
					if err := s.sees(dir, channel, want); err != nil {
						t.Errorf("%s: %s %v", kind, channel, err)
					}
				}
			}
		})
	}
}

// TestVersionOfRestoredMetadataIsNotPublishedAgain checks that a publisher that has not read the store does not publish
// a version if the store has its artifact with other bytes.
func TestVersionOfRestoredMetadataIsNotPublishedAgain(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"one", "two", "three"} {
		s.artifact(name, name)
	}
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	backup := s.path("backup")
	if err := os.CopyFS(backup, os.DirFS(s.path("store/metadata"))); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "publish myapp 1.1 @two.tar.zst --channel testing", "")
	s.replace("store/metadata", backup)
	if err := os.RemoveAll(s.path("keys/seen")); err != nil {
		t.Fatal(err)
	}
	s.expect(2, "publish myapp 1.1 @three.tar.zst --channel testing", "hosts know the version")
	if err := os.RemoveAll(s.path("keys/seen")); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "publish myapp 1.1 @two.tar.zst --channel testing", "testing is 1.1")
	if err := os.RemoveAll(s.path("keys/seen")); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "publish myapp 1.2 @three.tar.zst --channel testing", "testing is 1.2")
}

// restored returns a store with versions 1.0 and 1.1 of a project that was restored from a backup of 1.0; HOST is a
// host that has read 1.1. With forgotten its publisher has read nothing.
func restored(t *testing.T, forgotten bool) *shell {
	s := newStore(t)
	t.Chdir(s.dir)
	for file, content := range map[string]string{"myapp-1.0": "1", "myapp-1.1": "2", "myapp-1.2": "3"} {
		s.artifact(file, content)
	}
	s.expect(0, "publish myapp 1.0 myapp-1.0.tar.zst --channel testing", "")
	s.expect(0, "publish other 1.0 myapp-1.0.tar.zst --channel testing", "")
	backup := s.path("backup")
	if err := os.CopyFS(backup, os.DirFS(s.path("store"))); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "publish myapp 1.1 myapp-1.1.tar.zst --channel testing", "")
	s.env["HOST"] = s.host()
	if err := s.sees(s.env["HOST"], "myapp/testing", "1.1"); err != nil {
		t.Fatal(err)
	}
	s.replace("store", backup)
	if forgotten {
		if err := os.RemoveAll(s.path("keys/seen")); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// replace replaces a directory by another.
func (s *shell) replace(name, by string) {
	s.t.Helper()
	if err := os.RemoveAll(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(s.dir, name), os.DirFS(by)); err != nil {
		s.t.Fatal(err)
	}
}

// sees returns the error of a host on which a channel does not resolve to a version.
func (s *shell) sees(dir, channel, version string) error {
	s.t.Helper()
	opened, err := stores.Open(s.env["CORPUS_STORE"], stores.Options{})
	if err != nil {
		return err
	}
	c, err := trust.Open(opened, dir, nil)
	if err == nil {
		err = c.Refresh(context.Background())
	}
	if err != nil {
		return err
	}
	ref, err := artifact.ParseRef(channel)
	if err != nil {
		return err
	}
	release, err := c.Resolve(context.Background(), ref)
	if err == nil && release.Version != version {
		s.t.Errorf("%s names %s, want %s", channel, release.Version, version)
	}
	if err == nil {
		err = c.Check(context.Background(), release, nil)
	}
	return err
}
