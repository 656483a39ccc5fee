package agent_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
)

// TestADirectoryInThePlaceOfAnyFileIsSetAside replaces each file of the agent's state directory by a directory: the
// next runs deploy, and the directory is kept beside the file.
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
			must(t, os.WriteFile(path, nil, 0o600)) // this host has no such file yet
		}
	}
	files, _ := keptFiles(t, state)
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := whole.duplicate(t)
			path := filepath.Join(l.Layout.State(), name)
			must(t, os.RemoveAll(path))
			must(t, os.MkdirAll(filepath.Join(path, "of", "others"), 0o755))
			l.Config.Store = "mem://"
			l.expect(exit.OK)
			l.expect(exit.OK)
			if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
				t.Errorf("%s has the mode %s", path, info.Mode())
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

// keptFiles returns the files of a state directory that are set aside when they are damaged, and the caches, which the
// agent can make again. The names are relative to the directory. Neither has the root of trust, which a person
// provides.
func keptFiles(t *testing.T, state string) (files, caches []string) {
	t.Helper()
	must(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		inside := strings.TrimPrefix(path, state+"/")
		switch {
		case err != nil || !e.Type().IsRegular() || inside == "trust/root.json":
		case strings.HasPrefix(inside, "trees/"), strings.HasPrefix(inside, "incoming/"),
			strings.Contains(inside, "~pages/"), strings.HasPrefix(filepath.Base(inside), "."):
			caches = append(caches, inside)
		default:
			files = append(files, inside)
		}
		return err
	}))
	return files, caches
}

// TestADirectoryInThePlaceOfACachedFileIsRemoved replaces each cached file, one that is needed and one that is
// obsolete, by a directory with a file: the next runs deploy without a note about it.
func TestADirectoryInThePlaceOfACachedFileIsRemoved(t *testing.T) {
	whole := deployedTwice(t)
	pages := filepath.Join(whole.Layout.Trust(), "projects", "myapp~pages")
	must(t, os.MkdirAll(pages, 0o700))
	must(t, os.WriteFile(filepath.Join(pages, strings.Repeat("0", 64)+".json"), nil, 0o600)) // no head names this page
	must(t, os.MkdirAll(whole.Layout.Incoming(), 0o700))
	must(t, os.WriteFile(filepath.Join(whole.Layout.Incoming(), strings.Repeat("0", 64)), nil, 0o600))
	_, caches := keptFiles(t, whole.Layout.State())
	for _, head := range []string{"same head", "new head"} {
		if head == "new head" {
			whole.publish("3")
		}
		t.Run(head, func(t *testing.T) {
			for _, name := range append(caches, "trust/projects/myapp~pages") {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					l := whole.duplicate(t)
					l.Config.Store = "mem://"
					l.damagedCache(name)
				})
			}
		})
	}
	if len(caches) < 3 {
		t.Errorf("the host has only %v", caches)
	}
}

// TestNamedPipeInThePlaceOfARelease replaces the directory of the deployed release by something else: no run blocks.
func TestNamedPipeInThePlaceOfARelease(t *testing.T) {
	whole := deployedTwice(t)
	real, err := filepath.EvalSymlinks(whole.Layout.Path("/srv/projects/myapp/current"))
	must(t, err)
	release := strings.TrimPrefix(real, whole.Layout.Root)
	for what, put := range map[string]func(path string) error{
		"a named pipe":   func(path string) error { return unix.Mkfifo(path, 0o644) },
		"a socket":       func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) },
		"a regular file": func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		for _, next := range []string{"the same release", "a new release", "a rollback"} {
			t.Run(what+", "+next, func(t *testing.T) {
				t.Parallel()
				l := whole.duplicate(t)
				l.Config.Store = "mem://"
				path := l.Layout.Path(release)
				must(t, os.RemoveAll(path))
				must(t, put(path))
				released := time.AfterFunc(20*time.Second, func() { // a run that blocks fails
					t.Error("the run blocks")
					f, _ := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
					time.Sleep(time.Second)
					_ = f.Close()
				})
				defer released.Stop()
				if s := mustStatus(t, l); !slices.ContainsFunc(s.Drift, func(text string) bool {
					return strings.HasSuffix(text, "is "+what+", and not a directory")
				}) {
					t.Errorf("status has the drift %q", s.Drift)
				}
				switch next {
				case "a new release":
					l.publish("3")
				case "a rollback":
					if _, err := l.RollbackTo(t.Context(), ""); err != nil {
						t.Error(err)
					}
					return
				}
				l.expect(exit.OK)
				l.expect(exit.OK)
			})
		}
	}
}

// damagedCache replaces a cached file by a directory, or a directory of cached files by a file, and deploys.
func (l *lab) damagedCache(name string) {
	l.t.Helper()
	path, isDir := filepath.Join(l.Layout.State(), name), strings.HasSuffix(name, "~pages")
	must(l.t, os.RemoveAll(path))
	if isDir {
		must(l.t, os.WriteFile(path, nil, 0o600))
	} else {
		must(l.t, os.MkdirAll(filepath.Join(path, "of", "others"), 0o755))
	}
	for i := range 2 {
		notes := strings.Join(l.expect(exit.OK).Notes, "\n")
		if i == 1 && strings.Contains(notes, filepath.Base(name)) || strings.Contains(notes, "keeping a page") {
			l.t.Errorf("run %d has the notes %q", i+1, notes)
		}
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() != isDir {
		l.t.Errorf("%s has the mode %s", path, info.Mode())
	}
}
