package cli

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// inOneLine returns a replacer that writes the line feeds in paths of an error as \x0a, so that the name of a file
// cannot look like another line of the program. [shown] escapes other control characters.
func inOneLine(err error) *strings.Replacer {
	var pairs []string
	for _, p := range pathsIn(err) {
		if strings.Contains(p, "\n") {
			pairs = append(pairs, p, diag.OneLine(p))
		}
	}
	return strings.NewReplacer(pairs...)
}

// labels are the starts of the lines by which readers tell the parts of the program's messages apart.
func labels() []string { return []string{"error:", "hint:", "warning:", "note:"} }

// unforged indents the lines of a message, after the first, that look like other messages of the program: output of a
// program, or a name with a line feed.
func unforged(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		bare := strings.ToLower(line)
		if i > 0 && slices.ContainsFunc(labels(), func(label string) bool { return strings.HasPrefix(bare, label) }) {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// pathsIn returns the paths of files in the tree of an error.
func pathsIn(err error) (paths []string) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case *fs.PathError:
		paths = append(paths, e.Path)
	case *os.LinkError:
		paths = append(paths, e.Old, e.New)
	case *walk.UnsafeError:
		paths = append(paths, e.Path, e.Component)
	case *diag.Diagnostic:
		paths = append(paths, e.Pos.File)
		var about *fs.PathError
		if errors.As(e.Object, &about) {
			paths = append(paths, about.Path)
		}
	}
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() error }:
		paths = append(paths, pathsIn(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			paths = append(paths, pathsIn(one)...)
		}
	}
	return paths
}
