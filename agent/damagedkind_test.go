package agent_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
)

// TestADirectoryInThePlaceOfAnyFileIsSetAside puts a directory in the place of each file that the agent keeps in its
// state directory, whichever the agent wrote: the next runs deploy, and what stood there is kept beside it.
func TestADirectoryInThePlaceOfAnyFileIsSetAside(t *testing.T) {
	whole := deployedTwice(t)
	whole.Config.UploadReports = true
	whole.expect(exit.OK)
	state := whole.Layout.State()
	rosters := filepath.Dir(whole.Layout.Roster("_"))
	must(t, os.MkdirAll(rosters, 0o700))
	for _, path := range append(whole.Layout.StateFiles(), filepath.Join(state, "trust", "timestamp.version"),
		whole.Layout.Roster("myapp")) {
		if _, err := os.Lstat(path); err != nil {
			must(t, os.WriteFile(path, nil, 0o600)) // this host has not needed it
		}
	}
	var files []string
	must(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		inside := strings.TrimPrefix(path, state+"/")
		cache := strings.HasPrefix(inside, "trees/") || strings.HasPrefix(inside, "incoming/") ||
			strings.Contains(inside, "~pages/") ||
			strings.HasPrefix(filepath.Base(inside), ".") // these are made again without a loss
		if err == nil && e.Type().IsRegular() && inside != "trust/root.json" && !cache {
			files = append(files, inside) // the root is a person's
		}
		return err
	}))
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := whole.again(t)
			path := filepath.Join(l.Layout.State(), name)
			must(t, os.RemoveAll(path))
			must(t, os.MkdirAll(filepath.Join(path, "of", "others"), 0o755))
			l.Config.Store = "mem://"
			l.expect(exit.OK)
			l.expect(exit.OK)
			if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
				t.Errorf("%s is %s", path, info.Mode())
			}
			if kept, err := filepath.Glob(path + layout.DamagedMark + "*"); err != nil || len(kept) != 1 {
				t.Errorf("beside it are %v, %v", kept, err)
			}
		})
	}
	if len(files) < 12 {
		t.Errorf("the host has only %v", files)
	}
}
