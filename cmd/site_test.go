package cmd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSiteListsEachDocument checks that the menu of the site has each document of docs once. `make site` fails for one
// that does not exist.
func TestSiteListsEachDocument(t *testing.T) {
	config, err := os.ReadFile("../packaging/site/hugo.toml")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(config)) {
		if list, ok := strings.CutPrefix(strings.TrimSpace(line), "pages = ["); ok {
			for name := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
				listed = append(listed, strings.Trim(strings.TrimSpace(name), `"`))
			}
		}
	}
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" {
			want = append(want, name)
		}
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("packaging/site/hugo.toml lists %v\nand docs has %v", listed, want)
	}
}
