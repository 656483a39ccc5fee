package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamageIsRepairedByPublishingAgain checks that verify lists all lost and damaged objects of a store, and that
// publishing the file again replaces them.
func TestDamageIsRepairedByPublishingAgain(t *testing.T) {
	for name, harm := range map[string]func(file string) error{
		"damaged": func(file string) error { return os.WriteFile(file, []byte("not what was signed"), 0o600) },
		"lost":    os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.artifact("one", noiseText(1<<20))
			s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
			for _, suffix := range []string{"1.0.tar.zst", ".index", ".blocks"} {
				files, err := filepath.Glob(s.path("store/deploy/myapp/*" + suffix))
				if err != nil || len(files) != 1 {
					t.Fatalf("%v, %v", files, err)
				}
				if err := harm(files[0]); err != nil {
					t.Fatal(err)
				}
				if code := s.run("verify"); code != 4 && code != 5 || !strings.Contains(s.err,
					"corpus publish PROJECT VERSION FILE") {
					t.Fatalf("%s %s: exit code %d\n%s", name, suffix, code, s.err)
				}
				s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "myapp/testing is 1.0")
				s.expect(0, "verify", "verified 1 artifact")
			}
		})
	}
}

// noiseText returns a text that does not compress, so that its artifact has blocks and an index.
func noiseText(n int) string {
	data, x := make([]byte, n), uint64(1)
	for i := range data {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		data[i] = byte(x >> 24)
	}
	return string(data)
}
