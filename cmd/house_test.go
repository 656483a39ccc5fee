package cmd_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// longest is the maximum length, in characters, of a line of a Go file; a tab counts as one.
const longest = 120

// longLinesAllowed has the files with longer lines, with the reason. Lines of strings between backquotes that have
// several lines are not counted: they are help, scripts and fixtures in the form in which a program prints or reads
// them.
var longLinesAllowed = map[string]string{
	"state/host/outage/outage_test.go":  "messages stand as package managers print them",
	"state/session/hostfilters_test.go": "templates stand beside what they render to",
	"grains/ec2/query/query_test.go":    "answers of AWS stand as they are sent",
	"state/formats/formats_test.go":     "msgpack in hexadecimal has no place for a break",
	"state/redact/redact_test.go":       "a URL stands as it is signed",
	"packaging/installed/place_test.go": "a path has no place for a break",
	"state/yaml/load_test.go":           "a document stands beside what it loads as",
}

// TestLinesFitTheScreen checks all Go files, including tests.
func TestLinesFitTheScreen(t *testing.T) {
	used := map[string]bool{}
	for _, name := range goFiles(t) {
		set, file, source := parsedFile(t, name)
		texts := textLines(set, file)
		for i, line := range strings.Split(string(source), "\n") {
			if utf8.RuneCountInString(line) <= longest || texts[i+1] {
				continue
			}
			if used[name] = true; longLinesAllowed[name] == "" {
				t.Errorf("%s:%d has %d characters, and a line may have %d", name, i+1, utf8.RuneCountInString(line), longest)
			}
		}
	}
	for name := range longLinesAllowed {
		if !used[name] {
			t.Errorf("%s is an exception that is not needed", name)
		}
	}
}

// textLines returns the lines of a file that are in a string between backquotes of several lines.
func textLines(set *token.FileSet, file *ast.File) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(text.Value, "`") {
			from, to := set.Position(text.Pos()).Line, set.Position(text.End()).Line
			for line := from; from < to && line <= to; line++ {
				lines[line] = true
			}
		}
		return true
	})
	return lines
}

// sized is a file or a function with its number of lines.
type sized struct {
	lines int
	name  string
}

// TestFunctionsAndFilesStaySmall limits the sizes of code, except tests and generated code, so that a function fits on
// one screen, and a file on few screens.
func TestFunctionsAndFilesStaySmall(t *testing.T) {
	var files, functions []sized
	for _, name := range goFiles(t) {
		set, file, source := parsedFile(t, name)
		if strings.HasSuffix(name, "_test.go") || ast.IsGenerated(file) {
			continue
		}
		files = append(files, sized{strings.Count(string(source), "\n"), name})
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
				functions = append(functions, sized{lines, f.Name.Name + " in " + name})
			}
		}
	}
	for _, size := range []struct {
		of           string
		all          []sized
		median, most int
	}{{"file", files, 141, 254}, {"function", functions, 10, 24}} {
		slices.SortFunc(size.all, func(a, b sized) int { return cmp.Compare(a.lines, b.lines) })
		n := len(size.all)
		median, most := size.all[(n-1)/2].lines, size.all[(n-1)*9/10].lines
		t.Logf("lines per %s: median %d, 90th percentile %d, of %d", size.of, median, most, n)
		if median > size.median || most > size.most {
			t.Errorf("a %s has %d lines in the median and %d at the 90th percentile, want at most %d and %d: "+
				"split what does two things; the longest are %v", size.of, median, most, size.median, size.most, size.all[n-10:])
		}
	}
}

// goFiles returns the names of all Go files of the repository.
func goFiles(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || path != ".." && strings.HasPrefix(d.Name(), ".")) {
			return errorOrSkip(err)
		}
		if strings.HasSuffix(path, ".go") {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(path), "../"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func parsedFile(t *testing.T, name string) (*token.FileSet, *ast.File, []byte) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return set, file, source
}
