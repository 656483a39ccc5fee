package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReadersRefuseOlderMetadata restores older metadata: publishers, and users who have only read the store, get an
// error.
func TestReadersRefuseOlderMetadata(t *testing.T) {
	for who, env := range map[string]map[string]string{
		"publisher": {},
		"reader":    {"CORPUS_KEYS": "", "CORPUS_TRUST_ROOT": "keys/root.json", "XDG_CACHE_HOME": "cache"},
	} {
		t.Run(who, func(t *testing.T) {
			s := newStore(t)
			s.artifact("one", "1")
			s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
			backup := s.path("backup")
			if err := os.CopyFS(backup, os.DirFS(s.path("store"))); err != nil {
				t.Fatal(err)
			}
			s.artifact("two", "2")
			s.expect(0, "publish myapp 1.1 @two.tar.zst --channel testing", "")
			for name, value := range env {
				if value != "" {
					value = filepath.Join(s.dir, value)
				}
				s.env[name] = value
			}
			for _, look := range []string{"ls", "verify", "root show"} {
				s.expect(0, look, "")
			}
			s.replace("store", backup)
			for _, look := range []string{"ls", "verify"} {
				s.expect(4, look, "the store was rolled back")
			}
			s.env["CORPUS_KEYS"] = s.path("keys")
			s.expect(0, "refresh --rebuild", "")
			for name := range env {
				s.env[name] = map[string]string{"CORPUS_KEYS": "", "CORPUS_TRUST_ROOT": s.path("keys/root.json"),
					"XDG_CACHE_HOME": s.path("cache")}[name]
			}
			s.expect(0, "ls", "1.1")
		})
	}
}
