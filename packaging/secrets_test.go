package packaging_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestSecretsAreNotPacked(t *testing.T) {
	tree := writeTree(t, "app", ".env", ".env.example", "conf/id_ed25519", "harmless.txt", "tls/ca.pem", "tls/server.pem",
		"docs/keys.md", "test/.npmrc")
	for name, text := range map[string]string{
		"harmless.txt": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "tls/ca.pem": "-----BEGIN CERTIFICATE-----\nMIIE\n",
		"docs/keys.md": "A key begins with -----BEGIN PRIVATE KEY-----.\n",
	} {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := packaging.Check(t.Context(), tree, packaging.Options{Allow: []packaging.Allowed{{Path: "test/.npmrc"}}})
	var list diag.List
	if !errors.As(err, &list) {
		t.Fatalf("packing secrets: %v", err)
	}
	var files []string
	for _, d := range list {
		files = append(files, d.Pos.File)
		if !strings.Contains(d.Hint, "allow") {
			t.Errorf("%s has the hint %q", d.Pos.File, d.Hint)
		}
	}
	if want := []string{".env", "conf/id_ed25519", "harmless.txt", "tls/server.pem"}; !slices.Equal(files, want) {
		t.Errorf("the refused files are %q, want %q", files, want)
	}
}

// A file and a directory are allowed by path, and a finding by its rule; another rule's finding still stops the build.
func TestFindingsAreAllowedByRule(t *testing.T) {
	tree := writeTree(t, "test/keys/a.key", "test/keys/b.key", "notes.md", "prod.env")
	key := "-----BEGIN EC PRIVATE KEY-----\n" + strings.Repeat("MHcCAQEEIBluB2BuspJcz1e58rnXpQEx48", 3) +
		"\n-----END EC PRIVATE KEY-----\n"
	if err := os.WriteFile(filepath.Join(tree, "notes.md"), []byte("An example:\n\n"+key), 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(allow ...packaging.Allowed) string {
		return fmt.Sprint(packaging.Check(t.Context(), tree, packaging.Options{Allow: allow}))
	}
	got := check(packaging.Allowed{Path: "test/"}, packaging.Allowed{Path: "notes.md", Rule: "age-secret-key"},
		packaging.Allowed{Path: "prod.env", Rule: "name"})
	if want := "notes.md:3: it contains a private key (rule private-key)"; got != want {
		t.Errorf("refused is %q, want %q", got, want)
	}
	if got := check(packaging.Allowed{Path: "test"}, packaging.Allowed{Path: "notes.md", Rule: "private-key"},
		packaging.Allowed{Path: "prod.env"}); got != "<nil>" {
		t.Errorf("refused although allowed: %s", got)
	}
}

func TestExcludedFilesAreNotPacked(t *testing.T) {
	tree := writeTree(t, "app.py", "app.pyc", "lib/x.pyc", "docs/a.md", "lib/docs/b.md", ".env")
	_, s := build(t, tree, packaging.Options{LeaveOut: []string{"*.pyc", "docs/*.md", ".env"}})
	slices.Sort(s.LeftOut)
	if want := []string{".env", "app.pyc", "docs/a.md", "lib/x.pyc"}; !slices.Equal(s.LeftOut, want) {
		t.Errorf("the excluded files are %q, want %q", s.LeftOut, want)
	}
	if err := packaging.Drop(tree, []string{"lib", "*.pyc"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"app.py": true, "app.pyc": false, "lib": false, "docs/a.md": true} {
		if _, err := os.Stat(filepath.Join(tree, name)); (err == nil) != want {
			t.Errorf("%s exists: %t, want %t", name, err == nil, want)
		}
	}
}
