package packaging_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact/needs"
	"github.com/corpus-agent/corpus-agent/packaging"
)

// Machines of programs, as their headers have them.
const intel386, amd64, arm64 = 3, 62, 183

// program returns the header of a program.
func program(machine byte) string {
	class := "\x02"
	if machine == intel386 {
		class = "\x01"
	}
	ident := "\x7fELF" + class + "\x01\x01" + strings.Repeat("\x00", 9)
	return ident + "\x02\x00" + string([]byte{machine}) + strings.Repeat("\x00", 64)
}

// TestProgramsOfPlainTreesAreRequirements builds trees without a builder.
func TestProgramsOfPlainTreesAreRequirements(t *testing.T) {
	type files = map[string]string
	for name, c := range map[string]struct {
		mode  os.FileMode
		files files
		want  string // a part of the description
		mixed bool
	}{
		"a program":              {0o755, files{"bin/x": program(arm64)}, `"arch": "arm64"`, false},
		"a program of 32 bits":   {0o755, files{"bin/x": program(intel386)}, "", false},
		"a program as data":      {0o644, files{"boot/x": program(arm64)}, "", false},
		"a script":               {0o755, files{"bin/x": "#!/bin/sh\n"}, "", false},
		"of two architectures":   {0o755, files{"a": program(arm64), "b": program(amd64)}, "", true},
		"with a description":     {0o755, files{"x": program(arm64), needs.File: "{}"}, "{}", false},
		"beside names around it": {0o755, files{".a": "", ".d/x": program(amd64)}, "amd64", false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := t.TempDir()
			for file, content := range c.files {
				file = filepath.Join(tree, file)
				made := os.MkdirAll(filepath.Dir(file), 0o755)
				if err := errors.Join(made, os.WriteFile(file, []byte(content), c.mode)); err != nil {
					t.Fatal(err)
				}
			}
			data, summary := build(t, tree, packaging.Options{})
			names, description := listed(t, data)
			if !strings.Contains(description, c.want) || (c.want == "") != (description == "") {
				t.Errorf("the description is %q, want %q", description, c.want)
			}
			if !slices.IsSorted(names) || summary.Files != len(names) || (summary.Mixed != "") != c.mixed {
				t.Errorf("%q were packed: %+v", names, summary)
			}
		})
	}
}

// listed returns the names in an artifact and the content of the description.
func listed(t *testing.T, artifact []byte) (names []string, description string) {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(artifact))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names, description
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Name == needs.File {
			data, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			description = string(data)
		}
	}
}
