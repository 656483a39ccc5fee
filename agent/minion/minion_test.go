package minion_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/minion"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// write makes a configuration directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "@", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	dir := write(t, map[string]string{
		"minion": "id: web1\nfile_roots:\n  base: [@/states, '@/more*']\n  dev: [/dev-states]\ngrains: {role: db, a: 1}\n" +
			"state_output: changes_id\nstate_verbose: False\nfailhard: True\npillar_source_merging_strategy: recurse\n" +
			"saltenv: dev\npillarenv_from_saltenv: True\nmine: x\ninclude: extra/*.yaml\ngitfs_remotes: [x]\n",
		"minion.d/a.conf":  "test: True\nmine: y\n",
		"minion.d/b.conf":  "mine: z\n",
		"minion.d/not.txt": "id: no\n",
		"extra/c.yaml":     "output: json\n",
		"grains":           "role: web\n",
		"more1/top.sls":    "", "more2/top.sls": "",
	})
	c, err := minion.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.ID != "web1" || !c.Test || !c.Failhard ||
		c.Output != (minion.Output{Mode: "changes", Format: "json", Color: true}) {
		t.Errorf("settings are %+v", c)
	}
	if len(c.States) != 2 || !slices.Equal(c.States[0].Dirs, []string{dir + "/states", dir + "/more1", dir + "/more2"}) ||
		c.States[1].Name != "dev" {
		t.Errorf("file_roots are %v", c.States)
	}
	if len(c.Pillar) != 1 || !slices.Equal(c.Pillar[0].Dirs, []string{"/srv/pillar"}) {
		t.Errorf("pillar_roots are %v", c.Pillar)
	}
	if !value.Equal(c.Grains, value.NewMap("role", "web", "a", 1)) {
		t.Errorf("grains are %s", value.Repr(c.Grains))
	}
	for name, want := range map[string]any{"mine": "z", "pillarenv": "dev", "pillar_source_merging_strategy": "recurse",
		"conf_file": dir + "/minion", "config_dir": dir} {
		if got := c.Options.Value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if c.StatesPos != (diag.Pos{File: dir + "/minion", Line: 2, Col: 1}) {
		t.Errorf("file_roots are at %v", c.StatesPos)
	}
	if len(c.Ignored) != 1 || !strings.Contains(c.Ignored[0], "gitfs_remotes") {
		t.Errorf("the ignored settings are %q", c.Ignored)
	}
}

func TestEmptyFileHasSaltsDefaults(t *testing.T) {
	c, err := minion.Load(write(t, map[string]string{"minion": "# nothing\n"}))
	if err != nil || c.States[0].Dirs[0] != "/srv/salt" || !c.Output.Verbose || c.Test || c.Failhard {
		t.Errorf("settings are %+v, %v", c, err)
	}
}

// TestMistakes checks that the mistakes of all files are reported at once with their positions.
func TestMistakes(t *testing.T) {
	dir := write(t, map[string]string{
		"minion": "file_roots:\n  base: /srv/salt\nid: [a]\npillar_roots: []\nstate_output: fulll\n" +
			"failhard: perhaps\npillar_source_merging_strategy: smrt\n",
		"minion.d/a.conf": "a: b: c\n",
		"minion.d/b.conf": "- a list\n",
	})
	_, err := minion.Load(dir)
	var problems diag.List
	if !errors.As(err, &problems) {
		t.Fatalf("error is %v", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimPrefix(p.Error(), dir+"/"))
	}
	for i, want := range []string{"minion:2:3: file_roots of base", "minion:3:1: id is a list",
		"minion:4:1: pillar_roots is a list", "minion:5:1: state_output",
		"minion:6:1: failhard is 'perhaps'", "minion:7:1: pillar_source_merging_strategy", "minion.d/a.conf:1:5:",
		"minion.d/b.conf:1:1: the file is a list"} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("problem %d of %q lacks %q", i, got, want)
		}
	}
}

func TestNoFile(t *testing.T) {
	_, err := minion.Load(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no minion file") || diag.HintOf(err) == "" {
		t.Errorf("error is %v", err)
	}
}
