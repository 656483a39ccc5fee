package packaging_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinksOfPackagedDocumentsResolve checks that each package contains its documents with the layout of the source
// tree, and all files to which they link.
func TestLinksOfPackagedDocumentsResolve(t *testing.T) {
	config, err := os.ReadFile("../goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	content := regexp.MustCompile(`(?m)^ *- \{src: "?([^",]+)"?, dst: /usr/share/doc/(corpus|corpus-agent)/([^,}]*)`)
	shipped := map[string]map[string]bool{"corpus": {}, "corpus-agent": {}}
	for _, found := range content.FindAllStringSubmatch(string(config), -1) {
		src, to, dst := found[1], found[2], found[3]
		if strings.HasPrefix(src, "packaging/") {
			continue
		}
		if dst != src && dst != path.Dir(src)+"/" {
			t.Errorf("the package %s has %s as %s, unlike the tree", to, src, dst)
		}
		files, err := filepath.Glob("../" + strings.TrimSuffix(src, "/"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s names no file: %v", src, err)
		}
		for _, file := range files {
			shipped[to][strings.TrimPrefix(file, "../")] = true
		}
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	for to, files := range shipped {
		documents := 0
		for file := range files {
			if path.Ext(file) != ".md" {
				continue
			}
			documents++
			text, err := os.ReadFile("../" + file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range link.FindAllStringSubmatch(string(text), -1) {
				target := path.Join(path.Dir(file), found[1])
				if _, err := os.Stat("../" + target); err != nil || strings.Contains(found[1], ":") {
					continue // not a link to a file, or one that the test of the documents reports
				}
				if !files[target] {
					t.Errorf("%s of the package %s links to %s, which the package lacks", file, to, target)
				}
			}
		}
		if documents < 20 {
			t.Errorf("the package %s has %d documents", to, documents)
		}
	}
	if !shipped["corpus"]["testdata/demo"] {
		t.Error("the package corpus lacks the trees of the examples")
	}
}
