package jinja_test

import (
	"encoding/json"
	"os"
	"testing"
)

// recorded is a template and its result in Jinja2 with Salt's filters.
type recorded struct {
	Files map[string]string `json:"files"`
	Cases []recordedCase    `json:"cases"`
}

type recordedCase struct {
	Name     string `json:"name"`
	Template string `json:"template"`
	Output   string `json:"output"`
	Kind     string `json:"kind"`
	Line     int    `json:"line"`
}

func TestRenderMatchesRecordings(t *testing.T) {
	data, err := os.ReadFile("../../testdata/jinja/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cases {
		t.Run(c.Name, func(t *testing.T) {
			out, err := render(options(r.Files), c.Template, host())
			switch {
			case c.Kind == "" && err != nil:
				t.Fatalf("%s\n%v", c.Template, err)
			case c.Kind == "" && out != c.Output:
				t.Fatalf("%s\n got %q\nwant %q", c.Template, out, c.Output)
			case c.Kind == "":
				return
			}
			if err == nil {
				t.Fatalf("%s\nrendered as %q, want an error", c.Template, out)
			}
			if e := jinjaError(t, err); e.Kind != c.Kind || e.Diagnostic.Pos.Line != c.Line {
				t.Fatalf("%s\n%s on line %d: %v\nwant %s on line %d", c.Template, e.Kind, e.Diagnostic.Pos.Line, err, c.Kind,
					c.Line)
			}
		})
	}
}
