package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestDamagedMemoryOfAPublisherIsLocal damages the metadata that publishers keep beside the keys: the error names that
// file, not the store, with a remedy; after the remedy the command succeeds.
func TestDamagedMemoryOfAPublisherIsLocal(t *testing.T) {
	s := newStore(t)
	for _, c := range []struct {
		path string
		put  func(path string) error
	}{
		{"keys/seen/root.json", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"keys/seen/root.json", func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) }},
		{"keys/seen", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"keys/seen", func(path string) error { return os.Symlink("nowhere", path) }},
		{"keys/seen/projects", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"keys/seen/timestamp.json", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"keys/seen/snapshot.json", func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"keys/seen/.lock", func(path string) error { return os.Mkdir(path, 0o700) }},
	} {
		path := s.path(c.path)
		for _, command := range []string{"ls", "verify", "refresh", "refresh --rebuild"} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := c.put(path); err != nil {
				t.Fatal(err)
			}
			s.expect(1, command, path)
			if output := s.all.String(); strings.Contains(output, "do not trust") ||
				!strings.Contains(output, "mv "+path+" "+path+".damaged") {
				t.Errorf("%s with %s prints:\n%s", command, c.path, output)
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			s.expect(0, command, "")
		}
	}
}
