package session_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/function/manual"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// writeDocs brings the lists of functions in docs/states.md up to date:
//
//	go test ./state/session -run TestStatesDocument -args -write-docs
var writeDocs = flag.Bool("write-docs", false, "bring docs/states.md up to date")

const document = "../../docs/states.md"

// TestStatesDocument compares docs/states.md with the registry. For each state, a list of its functions with their
// arguments and defaults, and an example of each from its manual, are between two marks.
// People write the text outside of the marks.
func TestStatesDocument(t *testing.T) {
	h, err := machine.New(host.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	registry := families.New(session.Settings{Host: h, ID: "docs"}).Modules()
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, state := range slices.Sorted(maps.Keys(registry)) {
		text = withList(text, state, list(state, registry[state])+examples(state, registry[state]))
	}
	text = withRefused(t, text, registry)
	for _, state := range marked(text) {
		if registry[state] == nil {
			t.Errorf("docs/states.md lists the functions of %s, which does not exist", state)
		}
	}
	if text == string(data) {
		return
	}
	if !*writeDocs {
		t.Fatal("docs/states.md is not up to date; run go test ./state/session -run TestStatesDocument -args -write-docs")
	}
	if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withRefused writes the table of unsupported states of Salt between its marks, with a row for each reason.
func withRefused(t *testing.T, text string, registry module.Registry) string {
	const begin, end = "<!-- states that are not here -->\n", "<!-- end of states that are not here -->\n"
	data, err := os.ReadFile("../module/unsupported_states.txt")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| states | why, and what to do instead |\n|---|---|\n")
	for _, paragraph := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		reason, states, _ := strings.Cut(paragraph, "\n")
		why, instead, ok := strings.Cut(strings.TrimPrefix(reason, ":"), "|")
		if ok && strings.HasPrefix(reason, ":") {
			for _, state := range strings.Fields(states) {
				if registry[state] != nil {
					t.Errorf("unsupported_states.txt lists %s, which is supported", state)
				}
			}
			fmt.Fprintf(&table, "| `%s` | %s: %s |\n", strings.Join(strings.Fields(states), "` `"), why, instead)
		}
	}
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/states.md lacks the marks of the unsupported states")
	}
	return before + begin + table.String() + end + after
}

func marks(state string) (begin, end string) {
	return "<!-- functions of " + state + " -->\n", "<!-- end of " + state + " -->\n"
}

// withList writes a list between its marks, or adds it at the end with a heading.
func withList(text, state, list string) string {
	begin, end := marks(state)
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return strings.TrimRight(text, "\n") + "\n\n### " + state + "\n\n" + begin + list + end
	}
	return before + begin + list + end + after
}

// marked returns the states for which the text has marks.
func marked(text string) []string {
	var states []string
	for l := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(l, "<!-- functions of "); ok {
			states = append(states, strings.TrimSuffix(rest, " -->\n"))
		}
	}
	return states
}

// list describes the functions of a state, a line each.
func list(state string, table module.Table) string {
	var b strings.Builder
	for _, function := range slices.Sorted(maps.Keys(table)) {
		words := arguments(reflect.ValueOf(table[function]()).Elem())
		fmt.Fprintf(&b, "- `%s.%s`", state, function)
		if len(words) > 0 {
			b.WriteString(": " + strings.Join(words, ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// examples shows an example of each function of a state. TestManualExamples compiles them.
func examples(state string, table module.Table) string {
	var b strings.Builder
	b.WriteString("\n```yaml\n")
	book := manual.States()
	for _, function := range slices.Sorted(maps.Keys(table)) {
		name := state + "." + function
		entry := book[name]
		does := strings.ToLower(entry.Sentence[:1]) + entry.Sentence[1:]
		fmt.Fprintf(&b, "# %s %s\n%s\n", name, does, entry.Declaration(name))
	}
	return b.String() + "```\n"
}

// arguments describes the arguments of a function except name: required ones in bold, others with their default unless
// it is empty.
func arguments(of reflect.Value) []string {
	var words []string
	for i := range of.NumField() {
		f := of.Type().Field(i)
		tag, ok := f.Tag.Lookup("sls")
		if !ok {
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				words = append(words, arguments(of.Field(i))...)
			}
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		switch {
		case name == "name" || strings.HasPrefix(name, "__"):
		case name == "*":
			words = append(words, "and others")
		case option == "required":
			words = append(words, "**`"+name+"`**")
		default:
			words = append(words, "`"+name+defaultOf(of.Field(i))+"`")
		}
	}
	return words
}

// defaultOf returns the default of an argument in the notation of SLS files.
func defaultOf(v reflect.Value) string {
	if v.IsZero() {
		return ""
	}
	switch v.Kind() {
	case reflect.Bool:
		return ": True"
	case reflect.String, reflect.Int, reflect.Float64:
		return fmt.Sprint(": ", v)
	case reflect.Slice:
		return fmt.Sprint(": ", v)
	case reflect.Pointer:
		return defaultOf(v.Elem())
	}
	return ""
}
