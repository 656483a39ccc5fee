package site

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/layout"
)

// TestKeptIsOfRootAlone checks that what root keeps between runs, and runs, comes from no place that another user can
// change, and goes to none.
func TestKeptIsOfRootAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	for what, change := range map[string]func(state, file, elsewhere string) error{
		"unchanged":           func(_, _, _ string) error { return nil },
		"mode of the file":    func(_, file, _ string) error { return os.Chmod(file, 0o666) },
		"owner of the file":   func(_, file, _ string) error { return os.Chown(file, 65534, 65534) },
		"owner of kept":       func(_, file, _ string) error { return os.Chown(filepath.Dir(file), 65534, 65534) },
		"owner of the state":  func(state, _, _ string) error { return os.Chown(state, 65534, 65534) },
		"a link to a user's":  func(_, file, elsewhere string) error { return replaced(filepath.Dir(file), elsewhere) },
		"a link in its place": func(_, file, elsewhere string) error { return replaced(file, elsewhere+"/x") },
	} {
		root := t.TempDir()
		if err := os.Chmod(root, 0o755); err != nil {
			t.Fatal(err)
		}
		k := kept{&Site{Layout: layout.Layout{Root: root}}}
		k.Write("x", []byte("first"))
		file := filepath.Join(k.site.Layout.Kept(), "x")
		if got := string(k.Read("x")); got != "first" {
			t.Fatalf("%q is read", got)
		}
		elsewhere := t.TempDir()
		for _, err := range []error{os.WriteFile(elsewhere+"/x", []byte("of a user"), 0o666),
			os.Chown(elsewhere, 65534, 65534), os.Chown(elsewhere+"/x", 65534, 65534),
			change(k.site.Layout.State(), file, elsewhere)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		want := map[bool]string{true: "first"}[what == "unchanged"]
		if got := string(k.Read("x")); got != want {
			t.Errorf("%s: %q is read, want %q", what, got, want)
		}
		k.Write("x", []byte("second"))
		if data, err := os.ReadFile(elsewhere + "/x"); err != nil || string(data) != "of a user" {
			t.Errorf("%s: %q, %v is in the user's file", what, data, err)
		}
	}
}

// replaced puts a link in the place of a file or directory.
func replaced(place, target string) error {
	if err := os.Rename(place, place+".old"); err != nil {
		return err
	}
	return os.Symlink(target, place)
}
