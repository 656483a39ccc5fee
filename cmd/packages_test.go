package cmd_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDocsArchitectureListsEveryPackage compares the tables of docs/architecture.md that have the column "package" with
// the directories that have Go files: each has one row.
func TestDocsArchitectureListsEveryPackage(t *testing.T) {
	for _, problem := range packageProblems(packageRows(page(t, architecture)), goDirectories(t)) {
		t.Errorf("%s: %s", architecture, problem)
	}
}

// TestDocsArchitectureMissesNoPackage checks that the comparison finds a missing row, a second row and an old row.
func TestDocsArchitectureMissesNoPackage(t *testing.T) {
	rows := packageRows("| package | contents |\n|---|---|\n| `a` | x |\n| `b` | of `c` |\n| `b` | y |\n\n" +
		"| module | package |\n|---|---|\n| `c` | `gone` |\n\n| path | what |\n|---|---|\n| `d` | z |\n")
	want := []string{"no row has the package c: add it to the list of packages", "the package b has 2 rows",
		"the package gone of a row does not exist: remove the row, or write where the package is now"}
	if got := packageProblems(rows, []string{"a", "b", "c"}); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// packageProblems compares the rows of packages with the packages that exist, and returns the mistakes.
func packageProblems(rows map[string]int, exist []string) (problems []string) {
	for _, path := range exist {
		if rows[path] == 0 {
			problems = append(problems, fmt.Sprintf("no row has the package %s: add it to the list of packages", path))
		}
	}
	for path, n := range rows {
		switch {
		case !slices.Contains(exist, path):
			problems = append(problems, fmt.Sprintf("the package %s of a row does not exist: remove the row, "+
				"or write where the package is now", path))
		case n > 1:
			problems = append(problems, fmt.Sprintf("the package %s has %d rows", path, n))
		}
	}
	slices.Sort(problems)
	return problems
}

// packageRows counts the rows that each package has in the tables of a page with the column "package".
func packageRows(text string) map[string]int {
	rows, column := map[string]int{}, -1
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			column = -1
			continue
		}
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		if column < 0 {
			column = slices.IndexFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == "package" })
			if column < 0 {
				column = len(cells) // a table of something else
			}
		} else if column < len(cells) {
			if path := codeSpan.FindStringSubmatch(cells[column]); path != nil {
				rows[path[1]]++
			}
		}
	}
	return rows
}

// goDirectories returns the directories of the repository that have Go files, tests included, whatever their build
// tags.
func goDirectories(t *testing.T) (paths []string) {
	t.Helper()
	for _, name := range goFiles(t) {
		if path := filepath.ToSlash(filepath.Dir(name)); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
