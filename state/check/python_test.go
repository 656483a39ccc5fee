package check_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/check"
)

// withPython returns the files of a tree with right and wrong Python. Each file would write the file at marker if it
// were executed.
func withPython(marker string) map[string]string {
	files := map[string]string{
		"states/_modules/fine.py":      "def f():\n    return 1\n",
		"states/_modules/pack/part.py": "def f(:\n    pass\n",
		"states/_states/mine.py":       "def made(name):\n  x = [1, 2\n",
		"states/_renderers/rows.py":    "def render(data):\n\treturn data\n  return 1\n",
		"grains/roles.py":              "x = 1\nreturn x y\n",
		"states/run.sls":               "#!py\ndef run()\n    return {}\n",
		"states/objects.sls":           "#!pyobjects\nfrom salt://x.sls import Y\nclass X\n",
		"states/plain.sls":             "a:\n  test.nop: []\n",
		"states/files/tool.py":         "print 'a file that a state installs'\n",
		"states/_utils/latin.py":       "# coding: latin-1\nx = '\xe9'\n",
		"states/_utils/bytes.py":       "x = '\xe9'\n",
		"states/_utils/unknown.py":     "# coding: nonsense\n",
	}
	program := "open(" + `"` + marker + `"` + ", 'w')\n"
	for name, text := range maps.Clone(files) {
		if line, rest, is := strings.Cut(text, "\n"); is && strings.HasPrefix(line, "#!") {
			files[name] = line + "\n" + program + rest
		} else if strings.HasSuffix(name, ".py") && !strings.HasPrefix(text, "# coding") {
			files[name] = program + text
		}
	}
	return files
}

func mistakesIn(r *check.Report, dir string) (texts []string) {
	for _, f := range r.Mistakes() {
		texts = append(texts, strings.TrimPrefix(f.Pos.String(), dir+"/"))
	}
	return texts
}

// TestPythonIsParsed checks that syntax errors have their places, and that nothing of the files is executed.
func TestPythonIsParsed(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	marker := filepath.Join(t.TempDir(), "executed")
	dir := tree(t, withPython(marker))
	r := checked(t, "", dir)
	got := strings.Join(mistakesIn(r, dir), " ")
	for _, want := range []string{"grains/roles.py:3:", "states/_modules/pack/part.py:2:", "states/_renderers/rows.py:4:",
		"states/_states/mine.py:3:", "states/_utils/bytes.py:2:", "states/_utils/unknown.py:1:1", "states/objects.sls:4:",
		"states/run.sls:3:"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not among %s", want, got)
		}
	}
	if n := len(r.Mistakes()); n != 8 {
		t.Errorf("%d mistakes: %s", n, got)
	}
	for _, f := range r.Mistakes() {
		if !strings.Contains(f.Message, "Python") || f.Hint == "" || f.Excerpt == "" || f.Pos.Col == 0 {
			t.Errorf("%s", f.Text())
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a file was executed")
	}
}

// TestPythonIsNotParsedWithoutPython3 checks that one note says so.
func TestPythonIsNotParsedWithoutPython3(t *testing.T) {
	files := withPython("/nowhere")
	t.Setenv("PATH", t.TempDir())
	r := checked(t, "", tree(t, files))
	var notes []string
	for _, f := range r.Findings {
		notes = append(notes, f.Text())
	}
	if len(notes) != 1 || !r.Findings[0].Note || !strings.Contains(notes[0], "10 files in Python not checked") {
		t.Errorf("findings are %q", notes)
	}
}
