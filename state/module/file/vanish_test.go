package file

import (
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// vanishing is a host whose files disappear below a directory after a listing: a service removes them.
type vanishing struct {
	host.Files
	root string
	gone []string
}

func (v *vanishing) ReadDir(dir string) ([]string, error) {
	names, err := v.Files.ReadDir(dir)
	for _, name := range v.gone {
		if path.Dir(name) == dir {
			_ = os.RemoveAll(v.root + name)
		}
	}
	return names, err
}

// TestFilesThatVanishDuringAWalk checks that states that walk a directory do not fail for files and directories that
// another process removes meanwhile.
func TestFilesThatVanishDuringAWalk(t *testing.T) {
	mode := func(bits fs.FileMode) module.Mode { return module.Mode{Given: true, Bits: bits} }
	for name, state := range map[string]module.Resource{
		"recurse": &directory{Name: "/srv", FileMode: mode(0o600), DirMode: mode(0o700), Recurse: value.Strings("mode")},
		"clean":   &directory{Name: "/srv", cleaning: cleaning{Clean: true}},
		"pruned":  &pruned{Name: "/srv", Recurse: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, dir := range []string{"/srv/kept", "/srv/session"} {
				if err := os.MkdirAll(root+dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{"/srv/a", "/srv/temporary", "/srv/session/x", "/srv/kept/late"} {
				if err := os.WriteFile(root+file, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			h, err := host.Open(host.Options{Root: root}, host.Caches{})
			if err != nil {
				t.Fatal(err)
			}
			h.Files = &vanishing{h.Files, root, []string{"/srv/temporary", "/srv/session"}}
			diff, err := state.Check(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(root + "/srv/kept/late"); err != nil {
				t.Fatal(err)
			}
			if _, err := state.Apply(t.Context(), h, diff); err != nil {
				t.Error(err)
			}
		})
	}
}
