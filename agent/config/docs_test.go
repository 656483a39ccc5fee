package config_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

var update = flag.Bool("update", false, "write the table of settings into docs/configuration.md")

const (
	docs  = "../../docs/configuration.md"
	begin = "<!-- settings -->\n"
	end   = "<!-- end -->"
)

// TestDocumentationListsAllSettings compares docs/configuration.md with the table of keys.
func TestDocumentationListsAllSettings(t *testing.T) {
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	written, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no markers for the table", docs)
	}
	if *update {
		if err := os.WriteFile(docs, []byte(before+begin+table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if written != table() {
		t.Errorf("the settings of %s differ from the table of keys; `make generated` writes them", docs)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("| setting | default | range | meaning |\n|---|---|---|---|\n")
	for _, k := range config.Keys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, shown(k.Default), k.Range(), k.Doc)
	}
	return b.String()
}

func shown(v any) string {
	switch v := v.(type) {
	case string:
		if v == "" {
			return ""
		}
		return "`" + v + "`"
	case time.Duration:
		return "`" + recipe.Short(v) + "`"
	case nil:
		return ""
	case []string:
		if len(v) > 0 {
			return "`[" + strings.Join(v, ", ") + "]`"
		}
		return ""
	}
	return fmt.Sprintf("`%v`", v)
}
