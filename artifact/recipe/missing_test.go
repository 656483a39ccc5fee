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

// TestRecipeFilesMustExist uses names of files that are missing, are directories, or cannot be run.
func TestRecipeFilesMustExist(t *testing.T) {
	tree := fstest.MapFS{
		"bin/check": {Mode: 0o755}, "bin/plain": {Mode: 0o644}, "bin/dir/x": {Mode: 0o644}, "web.service": {Mode: 0o644},
		"units/api.service": {Mode: 0o644},
	}
	for text, want := range map[string][]string{
		"health: [{script: bin/check}, {script: /usr/bin/true}, {unit: web.service}, {unit: nginx.service}]\n": nil,
		"health:\n  probes:\n    - script: bin/chek\n": {
			"corpus.yaml:3:15: bin/chek is not in the tree",
		},
		"health: [{script: ./bin/chek}]\n": {
			"corpus.yaml:1:19: bin/chek is not in the tree",
		},
		"health: [{script: bin/dir}]\n": {
			"corpus.yaml:1:19: bin/dir is not a file",
		},
		"health: [{script: bin/plain}]\n": {
			"corpus.yaml:1:19: the probe bin/plain is not executable",
		},
		"health: [{unit: wbe.service}]\n": {
			"corpus.yaml:1:17: the unit wbe.service is not in the tree",
		},
		"units: [units/api.service]\nreload: [aip.service]\n": {
			"corpus.yaml:2:10: the unit aip.service is not in the tree",
		},
		"hooks: {pre_release: [no.sh]}\nunits: [no/a.service]\n": {
			"corpus.yaml:1:23: no.sh", "corpus.yaml:2:9: no/a.service",
		},
		"templates: [{source: no.conf, target: /etc/no.conf}]\n": {
			"corpus.yaml:1:22: no.conf",
		},
		"builder: go\nhealth: [{script: bin/made-by-the-build}]\n": nil,
	} {
		tree[recipe.Name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		var list diag.List
		if _, err := recipe.LoadStrict(tree); err != nil && !errors.As(err, &list) {
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

// TestAllMistakesOfARecipeComeAtOnce uses unknown keys, wrong kinds, settings of another builder, code that is
// writable, and files that are missing in the tree.
func TestAllMistakesOfARecipeComeAtOnce(t *testing.T) {
	text := `nmae: shop
version: 1.0
builder: python
build: {main: [./cmd], requirements: absent.txt}
writable: [var, .salt]
hooks: {pre_release: ../out}
units: [shp.service]
templates: [{source: absent.j2, target: /etc/shop}]
health: [{script: bin/check, tcp: x}]
`
	tree := fstest.MapFS{"corpus.yaml": {Data: []byte(text)}, "shop.service": {}, ".salt/00.sls": {}}
	_, err := recipe.LoadStrict(tree)
	var list diag.List
	if !errors.As(err, &list) {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range []string{
		`corpus.yaml:1:1: unknown key "nmae"`, "corpus.yaml:4:9: build.main is for", "corpus.yaml:4:38: absent.txt",
		"corpus.yaml:5:17: writable: .salt is",
		"corpus.yaml:6:22: pre_release is a list", "corpus.yaml:7:9: the unit shp.service",
		"corpus.yaml:8:22: absent.j2", "corpus.yaml:9:30: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not among\n%v", want, err)
		}
	}
}
