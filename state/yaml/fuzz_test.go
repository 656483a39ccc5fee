package yaml_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// FuzzResolver checks that a document gives a value that can be printed, dumped and loaded again, or errors with
// positions.
func FuzzResolver(f *testing.F) {
	data, err := os.ReadFile("../../testdata/yaml/pyyaml.json")
	if err != nil {
		f.Fatal(err)
	}
	var cases []recorded
	if err := json.Unmarshal(data, &cases); err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add(c.Doc)
	}
	for _, doc := range []string{
		strings.Repeat("[", 2000), strings.Repeat("a:\n ", 50), strings.Repeat("- ", 2000), "a: &a [*a]", "a: &a {b: *a}",
		"<<: {<<: {a: 1}}", "a: !!binary x",
		"a: &a [1,1]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]", "? [a, b]\n: c", "%YAML 1.1\n---\na: |2-\n   x\n...\n",
		"a: 190:20:30.15\nb: 0644\nc: 1_0\n", "\ufeffa: b", "a: \"\\",
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		d, err := yaml.LoadString(doc, "t.sls")
		if err != nil {
			var list diag.List
			if !errors.As(err, &list) || len(list) == 0 {
				t.Fatalf("%q: the error has no position: %v", doc, err)
			}
			for _, p := range list {
				if p.Pos.Line < 1 || p.Pos.Col < 1 || p.Pos.File != "t.sls" {
					t.Fatalf("%q: %v at %s", doc, p, p.Pos)
				}
			}
			return
		}
		_ = value.Repr(d.Value)
		checkPositions(t, doc, d, d.Value, 0)
	})
}

// checkPositions looks up the positions of all values in a document.
func checkPositions(t *testing.T, doc string, d *yaml.Document, v any, depth int) {
	t.Helper()
	if depth > 20 {
		return
	}
	switch v := v.(type) {
	case *value.Map:
		for k, item := range v.All() {
			if p := d.Pos(v, k); p.Line > strings.Count(doc, "\n")+strings.Count(doc, "\r")+strings.Count(doc, "\u0085")+
				strings.Count(doc, "\u2028")+strings.Count(doc, "\u2029")+1 {
				t.Fatalf("%q: key %v is at %s", doc, k, p)
			}
			checkPositions(t, doc, d, item, depth+1)
		}
	case *value.List:
		for _, item := range v.Items[:min(len(v.Items), 10)] {
			checkPositions(t, doc, d, item, depth+1)
		}
	}
}
