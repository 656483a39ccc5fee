package manual

import (
	"os"
	"testing"
)

// TestPacked checks that the packed texts equal the text files that people edit.
func TestPacked(t *testing.T) {
	for name, data := range map[string]string{"functions.txt": functions, "states.txt": states} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if unpacked(data) != string(text) {
			t.Errorf("%s was changed: run `go generate ./state/function/manual`", name)
		}
	}
}
