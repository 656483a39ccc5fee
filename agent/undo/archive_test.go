package undo_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/archive"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// local reads archives from the host's own files.
type local struct{}

func (local) Archive(_ context.Context, w archive.Wanted) (archive.Source, error) {
	p, _ := w.Source.(string)
	return archive.Source{Shown: p, Path: p, Notes: "/var/cache/corpus/notes", Verified: func(r io.Reader) io.Reader {
		return r
	}}, nil
}

// extract runs archive.extracted.
func (s *scene) extract(h *host.Host, arguments ...any) {
	s.Helper()
	resource := archive.Functions(local{})["extracted"]()
	arguments = append([]any{"name", "/opt", "source", "/srv/a.tar", "enforce_toplevel", false}, arguments...)
	if _, problems := module.Decode(resource, module.Call{Arguments: value.NewMap(arguments...)}); len(problems) > 0 {
		s.Fatal(problems)
	}
	d, err := resource.Check(context.Background(), h)
	s.do(err)
	if d.Empty() {
		s.Fatal("the archive changes nothing")
	}
	_, err = resource.Apply(context.Background(), h, d)
	s.do(err)
}

// tarball makes a tar of files; a text that starts with -> is the target of a link.
func tarball(files map[string]string) string {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range sortedKeys(files) {
		text := files[name]
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if target, ok := strings.CutPrefix(text, "->"); ok {
			h.Typeflag, h.Linkname, h.Size, text = tar.TypeSymlink, target, 0, ""
		}
		_ = w.WriteHeader(h) // a buffer takes everything
		_, _ = io.WriteString(w, text)
	}
	_ = w.Close()
	return out.String()
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// tree describes the files below a directory: names with modes, contents and targets.
func (s *scene) tree(dir string) string {
	s.Helper()
	var out strings.Builder
	s.do(filepath.Walk(s.path(dir), func(p string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		out.WriteString(strings.TrimPrefix(p, s.root) + " " + info.Mode().String())
		switch {
		case info.Mode().IsRegular():
			data, _ := os.ReadFile(p)
			out.Write(append([]byte(" "), data...))
		case info.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			out.WriteString(" ->" + target)
		}
		out.WriteString("\n")
		return nil
	}))
	return out.String()
}

// TestUndoOfExtractedArchives undoes archive.extracted, which moves new directories as a whole and replaces
// files.
func TestUndoOfExtractedArchives(t *testing.T) {
	files := map[string]string{
		"app/bin/run": "new run", "app/etc/conf": "new conf", "app/new/deep/file": "1", "app/new/link": "->deep/file",
		"fresh/a/b": "2", "single": "3", "link": "->single",
	}
	for name, c := range map[string]struct {
		before    map[string]string
		arguments []any
	}{
		"into nothing":            {},
		"into an empty directory": {before: map[string]string{"/opt/": ""}},
		"over files": {before: map[string]string{"/opt/app/bin/run": "old run", "/opt/app/etc/mine": "mine",
			"/opt/single": "old"}, arguments: []any{"overwrite", true}},
		"clean": {before: map[string]string{"/opt/app/bin/run": "old run", "/opt/app/etc/mine": "mine", "/opt/single": "old"},
			arguments: []any{"clean", true, "overwrite", true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for p, text := range c.before {
				if strings.HasSuffix(p, "/") {
					s.do(os.MkdirAll(s.path(p), 0o755))
					continue
				}
				s.put(p, text)
			}
			s.put("/srv/a.tar", tarball(files))
			s.do(os.MkdirAll(s.path("/opt"), 0o755))
			if name == "into nothing" {
				s.do(os.RemoveAll(s.path("/opt")))
				s.do(os.MkdirAll(s.path("/srv/keep"), 0o755))
			}
			before := ""
			if name != "into nothing" {
				before = s.tree("/opt")
			}
			s.run("1", func(h *host.Host) { s.extract(h, c.arguments...) })
			if got := s.text("/opt/app/new/deep/file") + s.text("/opt/fresh/a/b") + s.text("/opt/link") +
				s.text("/opt/app/bin/run"); got != "123new run" {
				t.Fatalf("extracted %q", got)
			}
			did := s.restoreTwice()
			after := ""
			if _, err := os.Lstat(s.path("/opt")); err == nil {
				after = s.tree("/opt")
			}
			if after != before || len(did.Failed) > 0 {
				t.Errorf("after the restore:\n%s\nwant:\n%s\n%+v", after, before, did)
			}
		})
	}
}
