package cmd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// jsonReaders returns the functions of the packages of signed metadata that may read JSON without trust.Decode or
// trust.DecodeInto, each with the data that it reads.
func jsonReaders() map[string]string {
	return map[string]string{
		"trust.Decode": "the reader itself", "trust.DecodeInto": "the reader itself",
		"trust.readField": "a field that Decode has read, written again", "trust.setField": "what the publisher writes",
		"trust.Tree": "a part of a file that Decode has read", "trust.SetTree": "a part of a file that Decode has read",
		"trust.isJSON":     "whether a file of this host is damaged",
		"trust.isMetadata": "whether a file of this host is damaged", "trust.proofs": "a file of this host",
		"trust.readVersions": "a file of this host",
		"trust.version":      "a file of this host, which only saves requests",
		"blobs.ReadNote":     "a note that is not signed",
		"publish.ParseDraft": "a draft, which is passed to artifact.CheckJSON before it is used",
	}
}

// TestSignedMetadataHasOneReader checks that the packages that read signed metadata read JSON in no other way: only
// trust.Decode and trust.DecodeInto refuse data that two parsers may read differently, and survive data that makes a
// parser panic.
func TestSignedMetadataHasOneReader(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range metadataPackages(t) {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for function, at := range readsJSON(t, file) {
				name := filepath.Base(dir) + "." + function
				if used[name] = true; jsonReaders()[name] == "" {
					t.Errorf("%s reads JSON directly, in %s: use trust.Decode or trust.DecodeInto, or name what it reads in "+
						"jsonReaders", at, name)
				}
			}
		}
	}
	for name := range jsonReaders() {
		if !used[name] {
			t.Errorf("%s reads no JSON: remove it from jsonReaders", name)
		}
	}
}

// metadataPackages returns the directories of the packages that read or write signed metadata.
func metadataPackages(t *testing.T) []string {
	t.Helper()
	dirs := []string{"../artifact/trust"}
	err := filepath.WalkDir("../artifact/publish", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() != "testdata" {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil || len(dirs) < 5 {
		t.Fatalf("no packages: %v, %v", dirs, err)
	}
	return dirs
}

// readsJSON returns the functions of a file that call, or pass on, a JSON decoder, with their positions.
func readsJSON(t *testing.T, file string) map[string]string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fset, found := token.NewFileSet(), map[string]string{}
	parsed, err := parser.ParseFile(fset, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		function := "a declaration"
		if f, ok := d.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, _ := s.X.(*ast.Ident)
			inJSON := from != nil && from.Name == "json" && (s.Sel.Name == "Unmarshal" || s.Sel.Name == "NewDecoder")
			inTUF := from != nil && from.Name == "tuf" && s.Sel.Name == "Decode"
			if inJSON || inTUF || s.Sel.Name == "UnmarshalJSON" {
				found[function] = fset.Position(n.Pos()).String()
			}
			return true
		})
	}
	return found
}
