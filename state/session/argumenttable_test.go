package session_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// TestArgumentTable decodes arguments in the forms in which Salt's documentation and formulas give them.
// CORPUS_RECORD=1 writes the decoded arguments into the table, for a review.
func TestArgumentTable(t *testing.T) {
	const file = "testdata/arguments.txt"
	table, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := machine.New(host.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{Host: h, ID: "web1"})
	var lines []string
	for line := range strings.Lines(string(table)) {
		line = strings.TrimSuffix(line, "\n")
		if cells := strings.Split(line, " | "); len(cells) > 1 && line[0] != '#' {
			got := decoded(t, s, cells[0], strings.TrimSuffix(cells[1], " |"))
			row := cells[0] + " | " + strings.TrimSuffix(cells[1], " |") + " | " + got
			if row != line && os.Getenv("CORPUS_RECORD") == "" {
				t.Errorf("got  %s\nwant %s", row, line)
			}
			line = row
		}
		lines = append(lines, line)
	}
	if os.Getenv("CORPUS_RECORD") != "" {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// decoded returns the value that a state gets for an argument in YAML, or the error.
func decoded(t *testing.T, s *session.Session, function, text string) string {
	t.Helper()
	doc, err := yaml.LoadString(text, "row")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	state, name, _ := strings.Cut(function, ".")
	r, ok := s.Modules().New(state, name)
	if !ok {
		return "no such function"
	}
	arguments := doc.Value.(*value.Map)
	argument := arguments.Names()[0]
	warnings, problems := s.Decode(r, module.Call{Function: function, Arguments: arguments})
	for _, p := range problems {
		if !strings.Contains(p.Error(), "lacks its argument") {
			return "refused: " + p.Error()
		}
	}
	if len(warnings) > 0 {
		return "warning: " + warnings[0].Message
	}
	if field, ok := fieldOf(reflect.ValueOf(r).Elem(), argument); ok {
		return shown(field)
	}
	return "for the run"
}

func fieldOf(of reflect.Value, argument string) (reflect.Value, bool) {
	for i := range of.NumField() {
		field := of.Type().Field(i)
		tag, tagged := field.Tag.Lookup("sls")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case tagged && name == argument:
			return of.Field(i), true
		case !tagged && field.Anonymous && field.Type.Kind() == reflect.Struct:
			if found, ok := fieldOf(of.Field(i), argument); ok {
				return found, true
			}
		}
	}
	return reflect.Value{}, false
}

// shown returns the text that a template prints for the value of a field.
func shown(field reflect.Value) string {
	if field.Kind() == reflect.Pointer && !field.IsNil() && field.Type() != reflect.TypeFor[*value.Map]() &&
		field.Type() != reflect.TypeFor[*value.List]() {
		field = field.Elem()
	}
	if !field.CanInterface() {
		return fmt.Sprintf("%v", field)
	}
	switch v := field.Interface().(type) {
	case nil, bool, int, string, float64, *value.Map, *value.List:
		return value.Repr(v)
	case []string:
		return value.Repr(value.Strings(v...))
	case []any:
		return value.Repr(&value.List{Items: v})
	case module.Mode:
		return fmt.Sprintf("%+v", v)
	}
	return fmt.Sprintf("%+v", field.Interface())
}
