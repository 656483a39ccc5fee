package cmd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/architecture.md"

// placeRow is a row of a table of docs/architecture.md with the place of code.
type placeRow struct {
	line  int
	what  string
	path  string
	names []string // of functions, methods as Type.Method, and types
	tests []string // that fail if the row is not true any more
	held  bool     // the table has the column "test"
}

// TestDocsArchitectureNamesWhatExists checks that the paths and functions exist that the tables "path | function" of
// docs/architecture.md list, and the paths in its picture. After a move or a renaming, the failure names the row to
// correct and the new text.
func TestDocsArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../" + architecture)
	if err != nil {
		t.Fatal(err)
	}
	rows := placeRows(string(text))
	if len(rows) < 30 {
		t.Errorf("%s answers %d questions; want thirty at least", architecture, len(rows))
	}
	repo, tests, lineOf := repository(t), testNames(t), map[string]int{}
	for _, row := range rows {
		if first := lineOf[row.what]; first != 0 {
			t.Errorf("%s:%d: %q is already in line %d", architecture, row.line, row.what, first)
		}
		lineOf[row.what] = row.line
		for _, problem := range append(row.problems(repo), row.withoutTest(tests)...) {
			t.Errorf("%s:%d: row %q: %s", architecture, row.line, row.what, problem)
		}
	}
	for _, room := range picturePaths(string(text)) {
		if _, err := os.Stat(filepath.Join("..", room.path)); err != nil {
			t.Errorf("%s:%d: the picture names %s, which does not exist: correct the picture", architecture, room.line,
				room.path)
		}
	}
}

// TestDocsArchitectureFailureNamesRow checks that a failure after a move or a renaming contains the new place.
func TestDocsArchitectureFailureNamesRow(t *testing.T) {
	repo := sources{"a/new.go": {"Moved", "T.Method"}, "a/old.go": {"Kept"}}
	write := ": write the name of the function that does this now, or remove the row"
	for _, c := range []struct{ path, name, want string }{
		{"a/old.go", "Kept", ""},
		{"a/old.go", "Moved", "a/old.go does not declare Moved; it is in a/new.go: write that path"},
		{"a/gone.go", "T.Method", "a/gone.go does not exist; T.Method is in a/new.go: write that path"},
		{"a/gone", "", "a/gone does not exist: write where this is now"},
		{"a/old.go", "U.Method", "a/old.go does not declare U.Method; there is T.Method of a/new.go" + write},
		{"a/old.go", "Renamed", "a/old.go does not declare Renamed" + write},
	} {
		row := placeRow{path: c.path, names: strings.Fields(c.name)}
		if got := strings.Join(row.problems(repo), "\n"); got != c.want {
			t.Errorf("%s in %s:\n got %q\nwant %q", c.name, c.path, got, c.want)
		}
	}
}

// TestDocsArchitectureNamesTests checks that a row of the table of guarantees needs a test that exists.
func TestDocsArchitectureNamesTests(t *testing.T) {
	rows := placeRows("| guarantee | path | function | test |\n|---|---|---|---|\n| a | `x` | `F` | `TestA` `TestB` |\n" +
		"| b | `x` | | |\n")
	if len(rows) != 2 {
		t.Fatalf("rows are %+v", rows)
	}
	for i, want := range []string{"there is no test TestB: write the one that fails if this is broken",
		"no test is named: write the one that fails if this is broken"} {
		if got := strings.Join(rows[i].withoutTest(map[string]bool{"TestA": true}), "\n"); got != want {
			t.Errorf("row %d:\n got %q\nwant %q", i+1, got, want)
		}
	}
}

// sources has the declarations of Go files, by path. Other files have no entry.
type sources map[string][]string

// problems returns the mistakes in a row, with the text to write.
func (r placeRow) problems(repo sources) (problems []string) {
	declared, isGo := repo[r.path]
	_, err := os.Stat(filepath.Join("..", r.path))
	if err != nil && !isGo && len(r.names) == 0 {
		return []string{r.path + " does not exist: write where this is now"}
	}
	for _, name := range r.names {
		places := strings.Join(repo.declaring(name), " or ")
		switch {
		case slices.Contains(declared, name):
		case places == "":
			problems = append(problems, fmt.Sprintf("%s does not declare %s%s: "+
				"write the name of the function that does this now, or remove the row", r.path, name, repo.alike(name)))
		case isGo:
			problems = append(problems,
				fmt.Sprintf("%s does not declare %s; it is in %s: write that path", r.path, name, places))
		default:
			problems = append(problems, fmt.Sprintf("%s does not exist; %s is in %s: write that path", r.path, name, places))
		}
	}
	return problems
}

// withoutTest returns the mistakes in the column "test" of a row, if its table has one.
func (r placeRow) withoutTest(exist map[string]bool) (problems []string) {
	if r.held && len(r.tests) == 0 {
		problems = append(problems, "no test is named: write the one that fails if this is broken")
	}
	for _, name := range r.tests {
		if !exist[name] {
			problems = append(problems, "there is no test "+name+": write the one that fails if this is broken")
		}
	}
	return problems
}

// testNames returns the names of all tests of the repository, whatever their build tags.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(t `)
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			text, err := os.ReadFile("../" + file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
				names[match[1]] = true
			}
		}
	}
	return names
}

// declaring lists the files that declare a name, sorted.
func (repo sources) declaring(name string) (places []string) {
	for path, names := range repo {
		if slices.Contains(names, name) {
			places = append(places, path)
		}
	}
	slices.Sort(places)
	return places
}

// alike lists the methods and functions that have the name of another type's method, for a hint.
func (repo sources) alike(name string) string {
	var found []string
	for path, names := range repo {
		for _, n := range names {
			if base(n) == base(name) {
				found = append(found, n+" of "+path)
			}
		}
	}
	if slices.Sort(found); len(found) == 0 || len(found) > 5 {
		return ""
	}
	return "; there is " + strings.Join(found, ", ")
}

func base(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

var codeSpan = regexp.MustCompile("`([^`]+)`")

// placeRows reads the rows "what | path | function" of the tables of a page that have these columns, and perhaps a
// fourth, "test".
func placeRows(text string) (rows []placeRow) {
	inside := false
	for i, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 3 && len(cells) != 4 {
			inside = false
			continue
		}
		paths := codeSpans(cells[1])
		switch {
		case strings.TrimSpace(cells[1]) == "path":
			inside = true
		case inside && paths != nil:
			row := placeRow{line: i + 1, what: strings.TrimSpace(cells[0]), path: paths[0], names: codeSpans(cells[2])}
			if row.held = len(cells) == 4; row.held {
				row.tests = codeSpans(cells[3])
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// codeSpans returns the texts between backquotes.
func codeSpans(text string) (spans []string) {
	for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
		spans = append(spans, span[1])
	}
	return spans
}

var topPath = regexp.MustCompile(`(?:^|[\s(\[|])((?:agent|artifact|cmd|grains|packaging|state)(?:/[a-z0-9-]+)+)`)

// picturePaths returns the paths below the top-level folders in the indented blocks of a page.
func picturePaths(text string) (rooms []placeRow) {
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "    ") {
			for _, match := range topPath.FindAllStringSubmatch(line, -1) {
				rooms = append(rooms, placeRow{line: i + 1, path: match[1]})
			}
		}
	}
	return rooms
}

// repository reads the declarations in the Go files of this repository, except tests.
func repository(t *testing.T) sources {
	t.Helper()
	repo := sources{}
	for _, top := range []string{"agent", "artifact", "cmd", "grains", "packaging", "state"} {
		err := filepath.WalkDir("../"+top, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				repo[strings.TrimPrefix(filepath.ToSlash(path), "../")], err = declaredIn(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return repo
}

// declaredIn lists the functions, methods (as Type.Method) and types that a file declares.
func declaredIn(path string) (names []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			names = append(names, receiver(d)+d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names, nil
}

// receiver returns the type of a method and a dot, or "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
