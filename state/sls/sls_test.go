package sls_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/sls"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// high reads the file t of a tree of plain YAML files.
func high(t *testing.T, files map[string]string) (*compile.High, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		hosttest.Put(t, filepath.Join(dir, name), text, 0o644)
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	renderer := &render.Renderer{Default: "yaml"}
	loader := &sls.Loader{
		Tree: roots.New(h.Files, roots.Env{Name: "base", Dirs: []string{dir}}),
		Render: func(ctx context.Context, src render.Source, _ string) (*render.Document, error) {
			return renderer.Render(ctx, src, nil)
		},
	}
	return loader.High(t.Context(), []top.Match{{Env: "base", SLS: []string{"t"}}})
}

// TestIncludes checks that included files come first, and once, and that relative names start at the folder of the
// file.
func TestIncludes(t *testing.T) {
	got, err := high(t, map[string]string{
		"t/init.sls": "include: [.one, two, t.one]\nown: {test.nop: []}",
		"t/one.sls":  "include: [..two]\none: test.nop",
		"two.sls":    "two: {test: [nop, {name: x}]}",
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"two": "10000", "one": "10001", "own": "10002"} {
		if v, _ := value.Lookup(got.Data, id+":test", ":"); !strings.Contains(value.Repr(v), want) {
			t.Errorf("%s is %s, want the number %s", id, value.Repr(v), want)
		}
	}
	if v, _ := value.Lookup(got.Data, "one:__sls__", ":"); v != "t.one" {
		t.Errorf("one is from %v", v)
	}
	if n := len(got.Includes); n != 4 {
		t.Errorf("%d includes: %v", n, got.Includes)
	}
}

// TestIncludeOfADirectory checks that dots alone include the init.sls of that directory, under the name that it has
// under Salt, and that files that include each other so end.
func TestIncludeOfADirectory(t *testing.T) {
	got, err := high(t, map[string]string{
		"t.sls":             "include: [web.deep.cron]\n",
		"web/init.sls":      "include: [.deep.cron]\nweb: {test.nop: []}",
		"web/deep/init.sls": "include: [.cron]\ndeep: {test.nop: []}",
		"web/deep/cron.sls": "include: [., ..]\ncron: {test.nop: []}",
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"web": "web.", "deep": "web.deep.", "cron": "web.deep.cron"} {
		if v, _ := value.Lookup(got.Data, id+":__sls__", ":"); v != want {
			t.Errorf("%s is from %v, want %s", id, v, want)
		}
	}
	_, err = high(t, map[string]string{"t.sls": "include: [.]\n"})
	if err == nil || !strings.Contains(err.Error(), `include "." names no other file`) {
		t.Error(err)
	}
}

// TestNumbers checks that states are numbered in the order of the file, except those with the argument order.
func TestNumbers(t *testing.T) {
	got, err := high(t,
		map[string]string{"t.sls": "b: {test.nop: [{order: 3}]}\na: {test.nop: []}\n" +
			"c: {file.managed: [], service.running: []}"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"b:test": "{'order': 3}", "a:test": "{'order': 1000",
		"c:service": "{'order': 1000"} {
		if v, _ := value.Lookup(got.Data, path, ":"); !strings.Contains(value.Repr(v), want) {
			t.Errorf("%s is %s", path, value.Repr(v))
		}
	}
}

// TestProblems checks that all problems of all files are reported at their positions.
func TestProblems(t *testing.T) {
	_, err := high(t, map[string]string{
		"t.sls": `include:
  - nowhere
  - broken
  - .....far
same: {test.nop: []}
text: only text
odd: [1]
extend: [x]
`,
		"other.sls":  "same: {test.nop: []}",
		"broken.sls": "include: [other]\na: {b: c: d}",
	})
	if err == nil {
		t.Fatal("the files compiled")
	}
	for _, want := range []string{"t.sls:2", "nowhere", "broken.sls:2", "t.sls:4", "t.sls:6", "t.sls:7", "t.sls:8"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no problem names %s:\n%v", want, err)
		}
	}
}

// TestConflict checks that the error for an ID in two files names both files.
func TestConflict(t *testing.T) {
	_, err := high(t, map[string]string{
		"t.sls":     "include: [other]\nsame: {test.nop: []}",
		"other.sls": "same: {test.nop: []}",
	})
	if err == nil || !strings.Contains(err.Error(), "other.sls:1") || !strings.Contains(err.Error(), "SLS t") {
		t.Errorf("%v", err)
	}
}
