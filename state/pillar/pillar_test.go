package pillar_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/pillar"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// compiler returns a compiler of the pillar in files, which are plain YAML.
func compiler(t *testing.T, files map[string]string) *pillar.Compiler {
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
	return &pillar.Compiler{
		Tree:   roots.New(h.Files, roots.Env{Name: "base", Dirs: []string{dir}}),
		Target: &top.Target{ID: "web1", Grains: value.NewMap("os", "Debian")},
		Render: func(ctx context.Context, src render.Source, _ string, defaults *value.Map) (*render.Document, error) {
			return renderer.Render(ctx, src, defaults)
		},
	}
}

// TestStrategies checks the merge strategies. Of two values that cannot be merged, that of the later file is used.
func TestStrategies(t *testing.T) {
	files := map[string]string{
		"top.sls": "base: {'*': [a, b]}",
		"a.sls":   "x: {one: 1, list: [1]}\nonly: a",
		"b.sls":   "x: {two: 2, list: [2]}",
	}
	for _, c := range []struct {
		strategy value.Strategy
		lists    bool
		want     string
	}{
		{value.Smart, false, "{'x': {'one': 1, 'list': [2], 'two': 2}, 'only': 'a'}"},
		{value.Smart, true, "{'x': {'one': 1, 'list': [1, 2], 'two': 2}, 'only': 'a'}"},
		{"recurse", false, "{'x': {'one': 1, 'list': [2], 'two': 2}, 'only': 'a'}"},
		{"overwrite", false, "{'x': {'two': 2, 'list': [2]}, 'only': 'a'}"},
	} {
		p := compiler(t, files)
		p.Strategy, p.MergeLists = c.strategy, c.lists
		got, err := p.Compile(t.Context())
		if err != nil || value.Repr(got) != c.want {
			t.Errorf("%s, lists %v: %s %v, want %s", c.strategy, c.lists, value.Repr(got), err, c.want)
		}
	}
}

// TestIncludes checks that an include can put a file below a key, and that values of the command line win over all
// files.
func TestIncludes(t *testing.T) {
	p := compiler(t, map[string]string{
		"top.sls":         "base: {'os:Debian': [{match: grain}, web]}",
		"web.sls":         "include: [common, {users: {key: accounts}}]\nport: 80",
		"users.sls":       "alice: {}",
		"common/init.sls": "include: [.zone]\nport: 1",
		"common/zone.sls": "zone: north",
	})
	p.Override = value.NewMap("zone", "south")
	got, err := p.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"port": "80", "zone": "'south'", "accounts:alice": "{}"} {
		if v, _ := value.Lookup(got, path, ":"); value.Repr(v) != want {
			t.Errorf("%s is %s, want %s", path, value.Repr(v), want)
		}
	}
}

// TestProblems checks that all problems of all files are reported with their files.
func TestProblems(t *testing.T) {
	p := compiler(t, map[string]string{
		"top.sls":      "base: {'*': [missing, broken, includes, scalar]}",
		"broken.sls":   "a: [1",
		"includes.sls": "include: [nowhere]\nb: 1",
		"scalar.sls":   "just text",
	})
	_, err := p.Compile(t.Context())
	if err == nil {
		t.Fatal("the pillar compiled")
	}
	for _, want := range []string{"top.sls:1:14: there is no pillar file \"missing\"", "broken.sls:1", "includes.sls:1",
		"nowhere", "scalar.sls"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no problem names %s:\n%v", want, err)
		}
	}
}
