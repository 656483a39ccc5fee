package recipe_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestWhatARecipeNamesIsInTheTree names files that are missing, are directories, or cannot be run.
func TestWhatARecipeNamesIsInTheTree(t *testing.T) {
	tree := fstest.MapFS{
		"bin/check": {Mode: 0o755}, "bin/plain": {Mode: 0o644}, "bin/dir/x": {Mode: 0o644}, "web.service": {Mode: 0o644},
		"units/api.service": {Mode: 0o644},
	}
	for text, want := range map[string][]string{
		"health: [{script: bin/check}, {script: /usr/bin/true}, {unit: web.service}, {unit: nginx.service}]\n": nil,
		"health:\n  probes:\n    - script: bin/chek\n": {
			"corpus.yaml:3:15: it names bin/chek, which is not in the tree",
		},
		"health: [{script: ./bin/chek}]\n": {
			"corpus.yaml:1:19: it names bin/chek, which is not in the tree",
		},
		"health: [{script: bin/dir}]\n": {
			"corpus.yaml:1:19: it names bin/dir, which is no file",
		},
		"health: [{script: bin/plain}]\n": {
			"corpus.yaml:1:19: the probe bin/plain is not executable",
		},
		"health: [{unit: wbe.service}]\n": {
			"corpus.yaml:1:17: it names the unit wbe.service, which is not in the tree",
		},
		"units: [units/api.service]\nreload: [aip.service]\n": {
			"corpus.yaml:2:10: it names the unit aip.service, which is not in the tree",
		},
		"hooks: {pre_release: [no.sh]}\nunits: [no/a.service]\n": {
			"corpus.yaml:1:23: it names no.sh", "corpus.yaml:2:9: it names no/a.service",
		},
		"templates: [{source: no.conf, target: /etc/no.conf}]\n": {
			"corpus.yaml:1:22: it names no.conf",
		},
		"builder: go\nhealth: [{script: bin/made-by-the-build}]\n": nil,
	} {
		tree[recipe.Name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		r, err := recipe.LoadStrict(tree)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var list diag.List
		if err := r.Missing(tree); err != nil && !errors.As(err, &list) {
			t.Fatal(err)
		}
		if len(list) != len(want) {
			t.Errorf("%q: %v, want %q", text, list, want)
			continue
		}
		for i, d := range list {
			if !strings.Contains(d.Error(), want[i]) || d.Hint == "" {
				t.Errorf("%q: %s, want %q", text, fmt.Sprint(d.Text()), want[i])
			}
		}
	}
}
