package cmd_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCountsAgreeWithTheirNouns checks that messages do not contain "1 files": a number that may be one is formatted
// with diag.Count. Limits ("more than %d files") are never one.
func TestCountsAgreeWithTheirNouns(t *testing.T) {
	counted := regexp.MustCompile(
		`(\S*) ?%d ((failed|health|more|other|unfinished|valid) )?(artifacts|backups|changes|entries|errors|files|guests|` +
			`hosts|keys|names|objects|packs|probes|releases|reports|requests|signatures|slots|states|times|tries|uploads|` +
			`%ss)\b`)
	limits := map[string]bool{"than": true, "most": true, "of": true, "to": true, "all": true, "before": true,
		"take": true}
	for _, name := range goFiles(t) {
		if strings.Contains(name, "test") {
			continue
		}
		set, file, _ := parsedFile(t, name)
		ast.Inspect(file, func(n ast.Node) bool {
			text, is := n.(*ast.BasicLit)
			if !is || text.Kind != token.STRING {
				return true
			}
			for _, m := range counted.FindAllStringSubmatch(text.Value, -1) {
				if !limits[strings.Trim(m[1], `"`)] {
					t.Errorf("%s: %s: write the number with diag.Count", set.Position(text.Pos()), m[0])
				}
			}
			return true
		})
	}
}

func errorOrSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}
