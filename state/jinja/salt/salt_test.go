package salt_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/jinja/salt"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// printed returns the output of a template with one expression.
func printed(t *testing.T, expression string) (string, error) {
	t.Helper()
	o := jinja.Options{Filters: salt.Filters(), Tests: salt.Tests(), Globals: value.NewMap()}
	for name, v := range salt.Globals() {
		o.Globals.Set(name, v)
	}
	template, err := jinja.New(o).Parse(jinja.Source{Name: "t", File: "t", Text: "{{ " + expression + " }}"})
	if err != nil {
		return "", err
	}
	out, err := template.Render(context.Background(), value.NewMap())
	if err != nil {
		return "", err
	}
	return out.Text, nil
}

// TestResultsMatchSalt compares the results of filters, tests and globals with Salt's.
func TestResultsMatchSalt(t *testing.T) {
	data, err := os.ReadFile("testdata/answers.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(data).Files {
		want := strings.TrimSuffix(string(f.Data), "\n")
		got, err := printed(t, f.Name)
		if err != nil || got != want {
			t.Errorf("{{ %s }} is %q %v, want %q", f.Name, got, err, want)
		}
	}
}

// TestRefused checks the errors for wrong arguments.
func TestRefused(t *testing.T) {
	for expression, want := range map[string]string{
		`'a: [' | load_yaml`:               "",
		`'{' | load_json`:                  "",
		`raise('stop here')`:               "stop here",
		`1 | regex_replace('a', 'b')`:      "",
		`'x' | regex_match('(')`:           "",
		`{} | set_dict_key_value`:          "",
		`'x' | json_query('a..b')`:         "json_query",
		`[1, 2] | exactly_n_true('x')`:     "",
		`[1] | difference`:                 "",
		`'2002/12/25' | strftime(1, 2, 3)`: "",
	} {
		got, err := printed(t, expression)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("{{ %s }} is %q %v, want an error with %q", expression, got, err, want)
		}
	}
}
