package grains_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedGrainsAreTheRealOnes checks that the list for operators has every core grain, and no others.
func TestDocumentedGrainsAreTheRealOnes(t *testing.T) {
	text, err := os.ReadFile("../docs/grains.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| about | grains |")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatal("docs/grains.md has no table of core grains")
	}
	var documented []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(table, -1) {
		documented = append(documented, m[1])
	}
	real := map[string]bool{}
	trees, _ := filepath.Glob(hosts + "/*/root")
	for _, tree := range trees {
		for _, name := range collect(t, source(tree)).All(t.Context()).Names() {
			real[name] = true
		}
	}
	slices.Sort(documented)
	if want := slices.Sorted(maps.Keys(real)); !slices.Equal(documented, want) {
		t.Errorf("the documented grains are\n%q, the collected ones\n%q", documented, want)
	}
}
