package session_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/table"
)

// TestListOfHostFunctions compares the list of functions that `corpus check` refuses to answer without a host against
// the functions that templates have. It writes the list if CORPUS_WRITE_FUNCTIONS is set.
func TestListOfHostFunctions(t *testing.T) {
	const file = "../check/hostfunctions.txt"
	computed := strings.Fields("config data defaults grains hashutil log match mine pillar random saltutil slsutil test")
	var names []string
	for name := range table.New(function.Facts{}) {
		family, _, _ := strings.Cut(name, ".")
		if !slices.Contains(computed, family) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := strings.Join(names, "\n") + "\n"
	if os.Getenv("CORPUS_WRITE_FUNCTIONS") != "" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s is out of date; run `make generated`; read error: %v", file, err)
	}
}
