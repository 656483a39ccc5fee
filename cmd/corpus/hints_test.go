package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

var (
	named    = regexp.MustCompile("`corpus ([a-z][^`]*)`|(?m:^ {2,}corpus ([a-z].*)$)")
	longFlag = regexp.MustCompile(`^--[a-z-]+`)
)

// TestHintsNameCommandsThatExist takes every text of the programs that names a command of corpus, in backquotes or on a
// line of its own, and looks for the command and its flags.
func TestHintsNameCommandsThatExist(t *testing.T) {
	count := 0
	for _, root := range []string{"..", "../../agent", "../../artifact", "../../packaging"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						count += checkHint(t, path, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count < 50 {
		t.Errorf("only %d commands were found in the texts", count)
	}
}

// checkHint looks at the commands that a text names, and gives their number.
func checkHint(t *testing.T, path, text string) (count int) {
	t.Helper()
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		for _, line := range strings.Split(m[1]+m[2], "; ") {
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "corpus "))
			command, rest, err := newRoot(cli.Process()).Find(words)
			if err != nil || command.Name() == "corpus" || len(command.Commands()) > 0 && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				t.Errorf("%s names `corpus %s`, which is no command (%v)", path, line, err)
				continue
			}
			count++
			for _, word := range words {
				if flag := longFlag.FindString(word); flag != "" && command.Flags().Lookup(flag[2:]) == nil && command.InheritedFlags().Lookup(flag[2:]) == nil && flag != "--help" {
					t.Errorf("%s names `corpus %s`, and `corpus %s` has no flag %s", path, line, command.Name(), flag)
				}
			}
		}
	}
	return count
}
