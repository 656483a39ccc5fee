package session_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/check"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/table"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// TestListOfFunctions compares the functions of the engine with the list with which `corpus check` checks SLS files. It
// writes the list if CORPUS_WRITE_FUNCTIONS is set.
func TestListOfFunctions(t *testing.T) {
	const file = "../check/functions.txt"
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	registry := families.New(session.Settings{Host: h}).Modules()
	var lines []string
	for _, name := range registry.Functions() {
		state, fun, _ := strings.Cut(name, ".")
		resource, _ := registry.New(state, fun)
		arguments, open := module.ArgumentsOf(resource)
		words := []string{name}
		for _, a := range arguments {
			words = append(words, a.Name)
		}
		if open {
			words = append(words, "*")
		}
		lines = append(lines, strings.Join(words, " "))
	}
	slices.Sort(lines)
	source, err := os.ReadFile("../module/run_arguments.go")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"general"}
	for _, m := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		if module.General(m[1]) && !slices.Contains(words, m[1]) {
			words = append(words, m[1])
		}
	}
	want := strings.Join(append(lines, strings.Join(words, " ")), "\n") + "\n"
	if os.Getenv("CORPUS_WRITE_FUNCTIONS") != "" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is out of date; run `make generated`; read error: %v", file, err)
	}
	filters := slices.Sorted(maps.Keys(table.Filters(&function.Facts{})))
	if known := slices.Sorted(slices.Values(check.HostFilters())); !slices.Equal(filters, known) {
		t.Errorf("filters that read the host are %q, and the check lists %q", filters, known)
	}
}
