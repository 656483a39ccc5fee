package clone

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGitlinksInEachFormOfAnIndex writes indexes with git and reads them.
func TestGitlinksInEachFormOfAnIndex(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for _, c := range []struct{ format, version, more string }{
		{"sha1", "2", ""}, {"sha1", "3", "--intent-to-add"}, {"sha1", "4", ""}, {"sha256", "2", ""}, {"sha256", "4", ""},
	} {
		dir := t.TempDir()
		git := func(args ...string) {
			t.Helper()
			cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
			cmd.Env = append(os.Environ(), "HOME="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v: %s", args, err, out)
			}
		}
		git("init", "--quiet", "--object-format="+c.format)
		git("config", "index.version", c.version)
		id := strings.Repeat("a", map[string]int{"sha1": 40, "sha256": 64}[c.format])
		var want []string
		for i, name := range []string{"a/file", "a/sub", "a/sub-and-more", "a/subsub/deep", "b",
			"c/long/" + strings.Repeat("x", 300)} {
			mode := "100644"
			if i%2 == 1 {
				mode, want = "160000", append(want, name)
			}
			git("update-index", "--add", "--cacheinfo", mode+","+id+","+name)
		}
		if c.more != "" {
			if err := os.WriteFile(filepath.Join(dir, "later"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			git("add", c.more, "later")
		}
		git("update-index", "--index-version", c.version)
		data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil {
			t.Fatal(err)
		}
		if links, err := gitlinks(data); err != nil || !slices.Equal(links, want) || int(data[7]) != int(c.version[0]-'0') {
			t.Errorf("%+v: %q, %v, version %d; want %q", c, links, err, data[7], want)
		}
		for n := range data { // a truncated index is an error, or has fewer entries
			_, _ = gitlinks(data[:n])
		}
	}
}
