// Package hints compares the commands that texts name with the commands that a program has. Tests use it.
package hints

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
)

// placeholder replaces the parts of a text that only the running program knows.
const placeholder = "VALUE"

// longFlag is a flag with its name in full.
var longFlag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^--[a-z-]+`) })

// Check finds all texts below the paths that name a command of the program, in backquotes or on a separate line,
// and reports an error if the program has no such command, or the command no such flag. In Go files only strings
// are searched; tests, and files that are neither Go nor Markdown, are skipped. It returns the number of commands
// found.
func Check(t *testing.T, program func() *cobra.Command, paths ...string) (count int) {
	t.Helper()
	c := &checker{TB: t, program: program, name: program().Name()}
	c.named = regexp.MustCompile("`" + c.name + " ([a-z-][^`]*)`|(?m:^ {2,}" + c.name + " ([a-z-].*)$)")
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || d.IsDir():
				return err
			case filepath.Base(path) == "messages.md": // has the strings of the code, without what is not literal
				return nil
			case strings.HasSuffix(path, ".md"):
				return c.markdown(path)
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				return c.code(path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c.count
}

type checker struct {
	testing.TB
	program func() *cobra.Command
	name    string
	named   *regexp.Regexp
	count   int
}

func (c *checker) markdown(path string) error {
	text, err := os.ReadFile(path)
	c.text(path, string(text))
	return err
}

// code checks the strings of a Go file. Concatenated strings are checked with a placeholder for the parts that are
// not literals.
func (c *checker) code(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			c.text(path, joined(n))
			return false
		case *ast.BasicLit:
			c.text(path, joined(n))
		}
		return true
	})
	return nil
}

// joined returns the text of a string expression, with a placeholder for each part that is not a literal.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return joined(e.X) + joined(e.Y)
	}
	return placeholder
}

// text checks the commands that a text names.
func (c *checker) text(path, text string) {
	for _, m := range c.named.FindAllStringSubmatch(text, -1) {
		line, _, _ := strings.Cut(strings.ReplaceAll(m[1]+m[2], "\n", " "), "   ") // a description may follow
		for _, one := range strings.Split(line, "; ") {
			c.command(path, strings.Fields(strings.TrimPrefix(strings.TrimSpace(one), c.name+" ")))
		}
	}
}

func (c *checker) command(path string, words []string) {
	line := c.name + " " + strings.Join(words, " ")
	command, rest, err := c.program().Find(words)
	if err == nil && len(command.Commands()) > 0 && len(rest) > 0 && rest[0] == placeholder {
		return // any of its subcommands
	}
	none := err != nil || !command.HasParent() && !command.Runnable() && len(words) > 0 &&
		!strings.HasPrefix(words[0], "-")
	if none || len(command.Commands()) > 0 && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		c.Errorf("%s names `%s`, which is not a command (%v)", path, line, err)
		return
	}
	c.count++
	for _, word := range words {
		if flag := longFlag().FindString(word); flag != "" && !has(command, flag[2:]) {
			c.Errorf("%s names `%s`, and `%s` has no flag %s", path, line, command.CommandPath(), flag)
		}
	}
}

func has(command *cobra.Command, flag string) bool {
	return flag == "help" || flag == "version" && !command.HasParent() || command.Flags().Lookup(flag) != nil ||
		command.InheritedFlags().Lookup(flag) != nil
}
