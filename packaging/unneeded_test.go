package packaging_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/check"
)

// TestFilesOfAForgeAreNoted checks that a tree with files of a forge and of its CI has them noted, unless it leaves
// them out.
func TestFilesOfAForgeAreNoted(t *testing.T) {
	tree := fstest.MapFS{}
	for _, name := range []string{".github/workflows/deploy.yml", ".gitignore", "tools/corpus_linux_amd64.deb",
		"root.json", "check.sarif", "app/root.json"} {
		tree[name] = &fstest.MapFile{}
	}
	for leaveOut, want := range map[string]string{
		"":                    ".github check.sarif root.json tools/corpus_linux_amd64.deb",
		".github tools":       "check.sarif root.json",
		"*.deb root.json":     ".github check.sarif",
		"tools/*.deb *.sarif": ".github root.json",
	} {
		names, err := packaging.Unneeded(tree, strings.Fields(leaveOut))
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("without %q: %v, %v", leaveOut, names, err)
		}
	}
}

// TestStarterTreesWithNamesOfTheirOwnFiles checks that a tree with any name either compiles, with all its files, or is
// refused.
func TestStarterTreesWithNamesOfTheirOwnFiles(t *testing.T) {
	refused := []string{"base go", "base python", "base static", "corpus-agent go", "corpus-agent python",
		"corpus-agent static", "python3 python", "top go", "top python", "top static"}
	var got []string
	for _, name := range []string{"base", "corpus-agent", "guests", "init", "main", "nginx", "python3", "salt",
		"serve", "top"} {
		for _, kind := range packaging.StarterKinds() {
			usual, err := packaging.Starter(kind, "shop")
			if err != nil {
				t.Fatal(err)
			}
			files, err := packaging.Starter(kind, name)
			if err != nil {
				got = append(got, name+" "+kind)
				continue
			}
			tree := fstest.MapFS{}
			for file, data := range files {
				tree[file] = &fstest.MapFile{Data: data, Mode: 0o644}
			}
			if found, err := check.Tree(tree); len(files) != len(usual) || len(found) > 0 || err != nil {
				t.Errorf("%s named %s: %d of %d files, %v, %v", kind, name, len(files), len(usual), found, err)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, refused) {
		t.Errorf("refused are %q", got)
	}
}
