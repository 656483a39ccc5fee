package exec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestSemantics runs the trees of testdata/exec. Each has its results under Salt 3006: a line for each result, in the
// order of the run, with its number, its state and its outcome. The files `apply`, `test` and `again` are runs in the
// order of the files; `test` is a dry run.
func TestSemantics(t *testing.T) {
	files, err := filepath.Glob("../../testdata/exec/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d trees: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			semantics(t, archive)
		})
	}
}

// semantics runs one tree in a scratch directory; in its files @G@ stands for another one.
func semantics(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	states, scratch := t.TempDir(), t.TempDir()
	failhard := strings.Contains(string(archive.Comment), "failhard: True")
	for _, f := range archive.Files {
		text := strings.ReplaceAll(string(f.Data), "@G@", scratch)
		if !strings.HasSuffix(f.Name, ".sls") {
			if got := outcome(t, states, f.Name == "test", failhard); got != text {
				t.Errorf("%s gives\n%s\nwant\n%s", f.Name, got, text)
			}
			continue
		}
		if err := os.WriteFile(filepath.Join(states, f.Name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// outcome runs the SLS t and describes its results.
func outcome(t *testing.T, states string, dry, failhard bool) string {
	t.Helper()
	machine, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{
		Host: machine, ID: "golden", Grains: value.NewMap("id", "golden", "role", "web", "shell", "/bin/sh"),
		Failhard: failhard,
		States:   []roots.Env{{Name: "base", Dirs: []string{states}}},
	})
	answer, err := s.Call(context.Background(), "state.apply", []any{"t"}, value.NewMap("test", dry), nil)
	if err != nil {
		return "does not compile\n"
	}
	return described(answer.Value.(*value.Map))
}

func described(results *value.Map) string {
	type line struct {
		number int
		text   string
	}
	var lines []line
	for key, v := range results.All() {
		tag, r := strings.Split(key.(string), "_|-"), v.(*value.Map)
		text := fmt.Sprintf("%d %s.%s %s", r.Value("__run_num__"), tag[0], tag[len(tag)-1], tag[1])
		if tag[2] != tag[1] {
			text += " (" + tag[2] + ")"
		}
		text += " " + value.Str(r.Value("result"))
		if r.Value("changes").(*value.Map).Len() > 0 {
			text += " changed"
		}
		lines = append(lines, line{r.Value("__run_num__").(int), text})
	}
	slices.SortFunc(lines, func(a, b line) int {
		if a.number != b.number {
			return a.number - b.number
		}
		return strings.Compare(a.text, b.text)
	})
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}
