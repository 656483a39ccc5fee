package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	reports "github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hostileNames returns invalid names: they leave a directory, are an option of a program, end a line, move a terminal's
// cursor, or are longer than a file name.
func hostileNames() []string {
	return []string{"../x", "a/b", "-rf", "a\nb", "a\n", "a\x00b", "\x1b[2J", "a\x1b]52;c;eA==\x07",
		strings.Repeat("a", 300), "", ".", "..", "a b", "\u202ea"}
}

// TestHostileNamesAreRefused passes every such name to each input for names. The error about a file of a user has
// file:line:col.
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
		"host of a report": artifact.CheckHost,
		"cfg's user": func(name string) error {
			_, err := procedure.Layers{Pillar: value.NewMap("user", name)}.Merge()
			return err
		},
		"cfg's group": func(name string) error {
			_, err := procedure.Layers{Sample: value.NewMap("group", "{data_group}", "data",
				value.NewMap("data_group", name))}.Merge()
			return err
		},
		"user of set-configuration": func(name string) error {
			in := procedure.Input{Stdin: strings.NewReader(name + "\n")} // one line feed is removed
			_, err := procedure.ParseSettings([]string{"user=-"}, in)
			return err
		},
		"project/channel": func(name string) error { _, err := artifact.ParseRef(name + "/testing"); return err },
		"channel of ref":  func(name string) error { _, err := artifact.ParseRef("myapp/" + name); return err },
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
	readsHostileNames(t)
	for place, line := range map[string]string{
		"service": "service: %s", "instance": "instance: %s", "region": "region: %s", "node": "node: %s",
		"channels.base": "channels: {base: %s}", "channels.service": "channels: {service: %s}",
		"allow_unsigned":   "allow_unsigned: [%s]",
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
		eachHostile(t, "corpus.yaml "+place, line, func(text string) error {
			_, err := recipe.LoadStrict(tree(text))
			return err
		}, false)
		if place == "version" {
			continue
		}
		eachHostile(t, "corpus.yaml of a release, "+place, line, func(text string) error {
			_, err := recipe.Load(tree(text))
			return err
		}, false)
	}
}

// eachHostile puts hostile names into a line of a file. An empty one may mean that no value was given.
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
			t.Errorf("%s: the error for %q is %v", place, name, err)
			continue
		}
		if what, ok := map[string]string{"agent.yaml instance": "an instance name", "agent.yaml region": "a region name",
			"agent.yaml node": "a node name"}[place]; ok && !strings.Contains(err.Error(), what) {
			t.Errorf("%s: the refusal of %q names another kind of name: %v", place, name, err)
		}
		if list[0].Pos.Line == 0 || list[0].Pos.Col == 0 {
			t.Errorf("%s: the refusal of %q has no position: %v", place, name, err)
		}
		if strings.ContainsAny(err.Error(), "\x1b\x00\x07\u202e") {
			t.Errorf("%s: the refusal of %q has control characters: %q", place, name, err)
		}
	}
}

// readsHostileNames signs metadata and uploads reports with hostile names, as a project's key and a host's credentials
// allow: readers must not return such a name.
func readsHostileNames(t *testing.T) {
	t.Helper()
	role := tuf.NewTargets(time.Now().Add(time.Hour))
	channels, yanks := map[string]trust.Pointer{}, map[string]trust.Yank{}
	s := mem.New()
	for _, name := range hostileNames() {
		channels[name], yanks[name] = trust.Pointer{Version: name}, trust.Yank{Reason: name}
		file := tuf.TargetFile()
		file.Hashes = map[string]tuf.HexBytes{"sha256": make([]byte, 32)}
		role.Signed.Targets["deploy/myapp/"+name+".tar.zst"] = file
		role.Signed.Targets["deploy/"+name+"/1.tar.zst"] = file
		report, err := json.Marshal(map[string]any{"id": "20260101T000000.000000", "host": name, "ended": time.Now(),
			"outcome": name, "agent": name})
		if err != nil {
			t.Fatal(err)
		}
		// A store may refuse the key, too.
		_, _ = s.Put(t.Context(), "reports/myapp/"+name+"/"+time.Now().UTC().Format("20060102T150405.000000")+".json",
			bytes.NewReader(report), int64(len(report)), store.Condition{})
	}
	if err := errors.Join(trust.SetChannels(role, channels), trust.SetYanks(role, yanks)); err != nil {
		t.Fatal(err)
	}
	for _, r := range trust.Releases("myapp", role) {
		t.Errorf("metadata: the release %q is returned", r.Version)
	}
	read, err := trust.Channels(role)
	if err != nil || len(read) > 0 {
		t.Errorf("metadata: the channels are %v, %v", read, err)
	}
	taken, err := trust.Yanks(role)
	if err != nil || len(taken) > 0 {
		t.Errorf("metadata: versions that were undone are %q, %v", taken, err)
	}
	agents, err := reports.Agents(t.Context(), s, time.Now().Add(-time.Hour))
	if err != nil || len(agents) > 0 {
		t.Errorf("reports: hosts are %v, %v", agents, err)
	}
}
