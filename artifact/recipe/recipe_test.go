package recipe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

var update = flag.Bool("update", false, "write docs/corpus.schema.json and the table in docs/packaging.md")

func TestMistakesOfARecipeAreReportedTogether(t *testing.T) {
	_, err := recipe.Parse([]byte(`name: My App
bilder: go
builder: pythn
prefix: opt/app
files: [../x]
files: [y]
units: app.service
build:
  comand: [make]
  base: fedora/40
templates:
- source: /etc/x
  mode: rw
package: none
version:
`), "corpus.yaml")
	if err == nil {
		t.Fatal("an invalid recipe is read without an error")
	}
	var list diag.List
	if !errors.As(err, &list) {
		t.Fatalf("the mistakes are %v", err)
	}
	text := fmt.Sprint(err)
	for _, d := range list {
		text += "\n" + d.Hint
	}
	for _, want := range []string{
		`corpus.yaml:1:7: name is "My App"`, `corpus.yaml:2:1: unknown key "bilder"`, `did you mean "builder"`,
		`corpus.yaml:3:10: builder is "pythn"`, `did you mean "python"`,
		`corpus.yaml:4:9: "opt/app" is not an absolute path`, `corpus.yaml:5:9: "../x" is not a path inside the tree`,
		"corpus.yaml:6:1: files is given twice",
		"corpus.yaml:7:8: units is a list of paths", `corpus.yaml:9:3: unknown key "comand"`,
		`corpus.yaml:10:9: base is "fedora/40"`,
		`corpus.yaml:12:11: "/etc/x" is not a path inside the tree`, "corpus.yaml:12:3: target is missing",
		`corpus.yaml:13:9: mode is "rw"`, "write three octal digits, such as 0640", "lower-case letters, digits and hyphens",
		"corpus.yaml:14:10: a mapping was expected", "corpus.yaml:15:9: version must be a text",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not among\n%s", want, text)
		}
	}
}

func TestSettingsOfAnotherBuilderAreMistakes(t *testing.T) {
	for text, want := range map[string][]string{
		"build: {command: [make]}\n": {
			"corpus.yaml:1:8: build is set, but the builder",
		},
		"builder: tree\nbuild: {base: debian/bookworm}\n": {
			"corpus.yaml:2:9: build.base is for the builder command or python or node or go, and the builder is tree",
		},
		"builder: go\nbuild:\n  command: [make]\n  main: [.]\n  wheels: w\n": {
			"corpus.yaml:3:3: build.command is for the builder command",
			"corpus.yaml:5:3: build.wheels is for the builder python",
		},
		"templates:\n- {source: a, target: /a}\n- {source: b, target: /b}\n- {source: c, target: /a}\n": {
			"corpus.yaml:4:23: another template has the target /a too",
		},
		"name: [x\n": {"corpus.yaml:2:1: not YAML"},
	} {
		_, err := recipe.Parse([]byte(text), "corpus.yaml")
		for _, want := range want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		}
		var list diag.List
		var one *diag.Diagnostic
		if !errors.As(err, &list) && errors.As(err, &one) {
			list = diag.List{one}
		}
		for _, d := range list {
			if d.Hint == "" {
				t.Errorf("%q: %v has no hint", text, d)
			}
		}
	}
	tree := fstest.MapFS{recipe.Name: {Data: []byte("build: {command: [make]}\n")}}
	if _, err := recipe.Load(tree); err != nil {
		t.Errorf("a host, which does not build, refuses the recipe: %v", err)
	}
}

func TestARecipeIsRead(t *testing.T) {
	r, err := recipe.Parse([]byte(`
name: myapp
version: 1.10
builder: command
build: {command: [make, install], output: ./out/}
prefix: /srv/myapp
files: [b/, ./a, a]
templates:
- {source: etc/app.conf, target: /etc/app.conf, mode: 0640, check: app --check}
`), "corpus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "1.10" || r.Prefix != "/srv/myapp" || fmt.Sprint(r.Files) != "[a b]" ||
		fmt.Sprint(r.Build.Command) != "[make install]" {
		t.Errorf("the recipe is %+v", r)
	}
	if want := (recipe.Template{Source: "etc/app.conf", Target: "/etc/app.conf",
		Mode: "0640", Check: "app --check"}); r.Templates[0] != want {
		t.Errorf("the template is %+v, want %+v", r.Templates[0], want)
	}
}

func TestHostsIgnoreUnknownKeys(t *testing.T) {
	tree := fstest.MapFS{recipe.Name: {Data: []byte("sandbox: strict\nbuilder: rust\nwritable: [cache]\nbuild: {jobs: " +
		"4}\nhealth:\n  colour: green\n  probes: [{tcp: 'h:1', weight: 2}]\n")}}
	r, err := recipe.Load(tree)
	if err != nil || len(r.Writable) != 1 || len(r.Health.Probes) != 1 {
		t.Errorf("a host reads %+v, %v; want the known keys", r, err)
	}
	_, err = recipe.LoadStrict(tree)
	for _, key := range []string{"sandbox", "rust", "jobs", "colour", "weight"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("the author's check does not report %q: %v", key, err)
		}
	}
	tree[recipe.Name].Data = []byte("writable: ../x\n")
	if _, err := recipe.Load(tree); err == nil {
		t.Error("a host accepts a mistake in a known key")
	}
}

// TestSchemaAndTableArePublished checks that the published schema and the table of keys are made from the table of the
// parser.
func TestSchemaAndTableArePublished(t *testing.T) {
	const schema, page = "../../docs/corpus.schema.json", "../../docs/packaging.md"
	if !json.Valid(recipe.JSONSchema()) {
		t.Fatal("the schema is not JSON")
	}
	if *update {
		if err := os.WriteFile(schema, recipe.JSONSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(schema); err != nil || !bytes.Equal(data, recipe.JSONSchema()) {
		t.Errorf("%s differs from the keys of corpus.yaml; `make generated` writes it; read error: %v", schema, err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- keys -->\n", "<!-- end of keys -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	now, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no markers for the table of keys", page)
	}
	want := "\n| Key | Value | Meaning |\n|---|---|---|\n" + table("", recipe.Keys()) + "\n"
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != want {
		t.Errorf("the table in %s differs from the keys of corpus.yaml; `make generated` writes it", page)
	}
}

func table(prefix string, keys []recipe.Key) string {
	var b strings.Builder
	for _, k := range keys {
		kind := string(k.Kind)
		if k.Choices != nil {
			kind = strings.Join(k.Choices, ", ")
		}
		if k.Required {
			kind += ", required"
		}
		fmt.Fprintf(&b, "| `%s%s` | %s | %s |\n", prefix, k.Name, kind, strings.ReplaceAll(k.Doc, "|", "\\|"))
		b.WriteString(table(prefix+k.Name+".", k.Keys))
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("name: a\nbuild: {command: [x]}\n"))
	f.Add([]byte("templates:\n- {source: a, target: /b}\nhealth: [{tcp: 'h:1'}]\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := recipe.Parse(data, "corpus.yaml")
		if err != nil {
			return
		}
		for _, name := range r.Files {
			if strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") {
				t.Errorf("%q leaves the tree", name)
			}
		}
	})
}
