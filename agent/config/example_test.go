package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/config"
)

// TestExampleHasTheDefaults uncomments all settings of the example, and compares the configuration with the one without
// a file.
func TestExampleHasTheDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yaml")
	settings := regexp.MustCompile(`(?m)^#([a-z])`).ReplaceAll(config.Example(""), []byte("$1"))
	if n := bytes.Count(settings, []byte(": ")); n < len(config.Keys()) {
		t.Fatalf("%d settings of %d", n, len(config.Keys()))
	}
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(config.Sources{File: file, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	want, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	got.File, want.File = config.File{}, config.File{}
	if got.ExtPillar.Len() == 0 {
		got.ExtPillar = nil
	}
	if len(got.Health.Probes) == 0 {
		got.Health.Probes = nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the example gives\n%+v\nbut the defaults are\n%+v", got, want)
	}
}

// TestSchemaAndExampleArePublished compares the schema for editors, and the file that packages install, with the table
// of keys.
func TestSchemaAndExampleArePublished(t *testing.T) {
	if !json.Valid(config.JSONSchema()) {
		t.Fatal("the schema is not JSON")
	}
	for file, want := range map[string][]byte{
		"../../docs/agent.schema.json":   config.JSONSchema(),
		"../../packaging/etc/agent.yaml": config.Example(""),
	} {
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if data, err := os.ReadFile(file); err != nil || !bytes.Equal(data, want) {
			t.Errorf("%s differs from the settings; `make generated` writes it; read error: %v", file, err)
		}
	}
}
