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

// recorded is a document and its value in PyYAML.
type recorded struct {
	Doc string `json:"doc"`
	Res []any  `json:"res"`
	Err bool   `json:"err"`
}

// saltDiffers has the recorded documents for which Salt's loader differs from PyYAML's, and their values in Salt: 0644
// keeps its digits, dates are text, and a key of a mapping replaces the same key that is merged into it.
var saltDiffers = map[string]string{
	"v: 0644":                         `["map",[[["str","v"],["int","644"]]]]`,
	"v: 0777":                         `["map",[[["str","v"],["int","777"]]]]`,
	"v: 2001-12-14":                   `["map",[[["str","v"],["str","2001-12-14"]]]]`,
	"v: 2001-12-14t21:59:43.10-05:00": `["map",[[["str","v"],["str","2001-12-14t21:59:43.10-05:00"]]]]`,
	"v: 2001-12-14 21:59:43.10 -5":    `["map",[[["str","v"],["str","2001-12-14 21:59:43.10 -5"]]]]`,
	"v: 2001-12-15 2:59:43":           `["map",[[["str","v"],["str","2001-12-15 2:59:43"]]]]`,
	"mode: 0644\nenabled: yes\nports: [22:22, 80]\n": `["map",[[["str","mode"],["int","644"]],[["str","enabled"],["bool",true]],` +
		`[["str","ports"],["list",[["int","1342"],["int","80"]]]]]]`,
	"base: &b {x: 1, y: 2}\nd:\n  <<: *b\n  y: 3\n  z: 4\n": `["map",[[["str","base"],["map",[[["str","x"],["int","1"]],[["str","y"],["int","2"]]]]],` +
		`[["str","d"],["map",[[["str","x"],["int","1"]],[["str","y"],["int","3"]],[["str","z"],["int","4"]]]]]]]`,
}

func TestLoadMatchesRecordings(t *testing.T) {
	data, err := os.ReadFile("../../testdata/yaml/pyyaml.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []recorded
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if salt, ok := saltDiffers[c.Doc]; ok {
			c = recorded{Doc: c.Doc}
			if err := json.Unmarshal([]byte(salt), &c.Res); err != nil {
				t.Fatal(err)
			}
		}
		d, err := yaml.LoadString(c.Doc, "t.sls")
		switch {
		case c.Err && err == nil:
			t.Errorf("%q: loaded as %v, want an error", c.Doc, typed(d.Value))
		case c.Err:
			if list := (diag.List{}); !errors.As(err, &list) || list[0].Pos.Line == 0 || list[0].Excerpt == "" {
				t.Errorf("%q: the error has no position: %v", c.Doc, err)
			}
		case err != nil:
			t.Errorf("%q: %v", c.Doc, err)
		case !sameTyped(typed(d.Value), c.Res):
			t.Errorf("%q:\n got %v\nwant %v", c.Doc, typed(d.Value), c.Res)
		}
	}
}

func TestPlainYAMLMatchesRecordings(t *testing.T) {
	data, err := os.ReadFile("../../testdata/yaml/pyyaml.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []recorded
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		salt, differs := saltDiffers[c.Doc]
		_, err := yaml.LoadString(c.Doc, "t")
		if merged := strings.Contains(c.Doc, "<<"); merged || err != nil && strings.Contains(err.Error(), "conflicting ID") {
			continue // recorded with Salt's rule for duplicate keys
		}
		if d, err := yaml.LoadPlain(c.Doc, "t"); (err != nil) != c.Err {
			t.Errorf("%q: %v, and PyYAML's error is %t", c.Doc, err, c.Err)
		} else if octal := !differs || strings.Contains(c.Doc, "0644") ||
			strings.Contains(c.Doc, "0777"); octal && !c.Err && !sameTyped(typed(d.Value), c.Res) {
			t.Errorf("%q:\n got %v\nwant %v, as Salt %s", c.Doc, typed(d.Value), c.Res, salt)
		}
	}
	for doc, want := range map[string]string{"a: 1\na: 2\n": "2", "a: -0644": "-420", "a: !!int 010": "8", "a: +0_7": "7",
		"a: 08": "08", "a: 2001-12-14": "2001-12-14"} {
		d, err := yaml.LoadPlain(doc, "t")
		if err != nil {
			t.Errorf("%q: %v", doc, err)
		} else if got := value.Str(d.Value.(*value.Map).Value("a")); got != want {
			t.Errorf("%q: %s, want %s", doc, got, want)
		}
	}
}
