package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// expectation is what a line of an error case says of itself: # error: message // hint.
type expectation struct {
	line          int
	message, hint string
}

func expectations(text string) (all []expectation) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, part := range strings.Split(strings.TrimRight(line, "\n"), "# error: ")[1:] {
			message, hint, _ := strings.Cut(part, " // ")
			all = append(all, expectation{n, strings.TrimSpace(message), strings.TrimSpace(hint)})
		}
	}
	return all
}

// TestMistakesAreToldAtTheirPlaces compiles the files of testdata/errors, each of which says beside
// its bad lines what is to be told of them: all of it, at once, and nothing else.
func TestMistakesAreToldAtTheirPlaces(t *testing.T) {
	files, err := filepath.Glob("../../testdata/errors/*.sls")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d error cases: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".sls"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			set, dir := settings(t, map[string]string{
				"states/t.sls": string(text), "states/web/init.sls": "w:\n  test.nop: []\n", "states/web/map.jinja": "",
				"states/_states/mystate.py": "", "states/_modules/mymod.py": "",
			})
			set.Strict, set.Options = true, value.NewMap("strict_arguments", true)
			s := session.New(set)
			_, err = s.Program(t.Context(), s.Named("t"))
			list := mustProblems(t, err)
			wanted := expectations(string(text))
			if len(list) != len(wanted) || len(wanted) == 0 {
				t.Fatalf("%d problems, want %d:\n%v", len(list), len(wanted), list)
			}
			for _, w := range wanted {
				checkTold(t, list, w, dir+"/states/t.sls")
			}
		})
	}
}

// checkTold looks for a problem on a line, with its place, what is around it and what to do.
func checkTold(t *testing.T, list diag.List, w expectation, file string) {
	t.Helper()
	for _, p := range list {
		if p.Pos.Line != w.line || !strings.Contains(p.Message, w.message) || !strings.Contains(p.Hint, w.hint) {
			continue
		}
		if p.Pos.File != file || p.Pos.Col < 1 || p.Hint == "" || !strings.Contains(p.Excerpt, "^") {
			t.Errorf("no place, hint or excerpt: %s", p.Text())
		}
		return
	}
	t.Errorf("nothing says %q with the hint %q on line %d:\n%v", w.message, w.hint, w.line, list)
}
