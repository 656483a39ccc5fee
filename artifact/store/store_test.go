package store_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// FuzzCheckKey checks that every valid key is a path below a directory, and has one spelling.
func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"deploy/app/1.0.tar.zst", "../x", "a/../../x", "/x", "a//b", "a/", "...", "", "\x00",
		"größe", strings.Repeat("x", 2000)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if store.CheckKey(key) == nil && (!filepath.IsLocal(key) || path.Clean(key) != key || len(key) > 1024) {
			t.Errorf("%q is accepted as a key", key)
		}
	})
}
