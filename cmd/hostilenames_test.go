package cmd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// hostileNames are no names of anything: they leave a directory, are an option of a program, end a line, move a
// terminal's cursor, or are longer than a file's name.
func hostileNames() []string {
	return []string{"../x", "a/b", "-rf", "a\nb", "a\n", "a\x00b", "\x1b[2J", "a\x1b]52;c;eA==\x07", strings.Repeat("a", 300), "", ".", "..", "a b", "\u202ea"}
}

// TestHostileNamesAreRefused gives every such name to each place where a name enters from outside. In a file that a
// person writes the refusal has file:line:col.
func TestHostileNamesAreRefused(t *testing.T) {
	for place, check := range map[string]func(string) error{
		"project":          artifact.CheckProject,
		"project of store": trust.CheckProject,
		"delegated role":   trust.CheckDelegated,
		"version":          artifact.CheckVersion,
		"channel":          artifact.CheckChannel,
		"unit":             artifact.CheckUnit,
		"user":             artifact.CheckUser,
		"host for ssh":     cli.CheckHost,
		"project/channel":  func(name string) error { _, err := artifact.ParseRef(name + "/testing"); return err },
		"channel of ref":   func(name string) error { _, err := artifact.ParseRef("myapp/" + name); return err },
		"given service": func(name string) error {
			return grains.Request{Given: grains.Identity{Service: name, Instance: "testing"}}.Check()
		},
		"given instance": func(name string) error {
			return grains.Request{Given: grains.Identity{Service: "myapp", Instance: name}}.Check()
		},
	} {
		for _, name := range hostileNames() {
			if place == "project/channel" && name == "a/b" {
				continue // the channel is refused then
			}
			if check(name) == nil {
				t.Errorf("%s: %q is accepted", place, name)
			}
		}
	}
	for place, line := range map[string]string{
		"service": "service: %s", "instance": "instance: %s", "region": "region: %s", "node": "node: %s",
		"channels.base": "channels: {base: %s}", "channels.service": "channels: {service: %s}", "allow_unsigned": "allow_unsigned: [%s]",
		"environments.dev": "environments: {dev: [%s]}", "environments.prod": "environments: {prod: [%s]}",
	} {
		eachHostile(t, "agent.yaml "+place, line, func(text string) error {
			file := filepath.Join(t.TempDir(), "agent.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := config.Load(config.Sources{File: file, Required: true})
			return err
		}, !strings.Contains(line, "["))
	}
	for place, line := range map[string]string{
		"name": "name: %s", "version": "version: %s", "units": "units: [%s]", "reload": "reload: [%s]",
		"templates.user":  "templates: [{source: a, target: /b, user: %s}]",
		"templates.group": "templates: [{source: a, target: /b, group: %s}]",
	} {
		tree := func(text string) fstest.MapFS { return fstest.MapFS{recipe.Name: {Data: []byte(text)}} }
		eachHostile(t, "corpus.yaml "+place, line, func(text string) error { _, err := recipe.LoadStrict(tree(text)); return err }, false)
		if place == "version" {
			continue
		}
		eachHostile(t, "corpus.yaml of a release, "+place, line, func(text string) error { _, err := recipe.Load(tree(text)); return err }, false)
	}
}

// eachHostile puts hostile names into a line of a file. An empty one may mean that nothing was said.
func eachHostile(t *testing.T, place, line string, read func(string) error, mayBeEmpty bool) {
	t.Helper()
	for _, name := range hostileNames() {
		if name == "" && mayBeEmpty || name == "a/b" && strings.HasSuffix(place, "units") {
			continue // a unit may be named by its file in the tree
		}
		quoted, err := json.Marshal(name) // which YAML reads too
		if err != nil {
			t.Fatal(err)
		}
		err = read(fmt.Sprintf(line, quoted) + "\n")
		var list diag.List
		if !errors.As(err, &list) || len(list) == 0 {
			t.Errorf("%s: %q is answered with %v", place, name, err)
			continue
		}
		if list[0].Pos.Line == 0 || list[0].Pos.Col == 0 {
			t.Errorf("%s: %q is refused without its place: %v", place, name, err)
		}
		if strings.ContainsAny(err.Error(), "\x1b\x00\x07\u202e") {
			t.Errorf("%s: the refusal of %q holds control characters: %q", place, name, err)
		}
	}
}
