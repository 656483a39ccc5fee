package session_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// blocks returns the examples of one kind in docs/language.md.
func blocks(t *testing.T, kind string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("docs/language.md has no examples of %s", kind)
	}
	return found
}

func TestDocumentedStatesCompile(t *testing.T) {
	for _, example := range blocks(t, "sls") {
		set, _ := settings(t, map[string]string{
			"states/t.sls":         example,
			"states/web/files.sls": "/etc/nginx/conf.d:\n  file.directory:\n    - makedirs: True\n",
		})
		set.Strict = true
		s := families.New(set)
		p, err := s.Program(t.Context(), s.Named("t"))
		if err != nil || len(p.Steps) < 4 {
			t.Errorf("%s\n%v", example, err)
		}
	}
}

func TestDocumentedExpressions(t *testing.T) {
	for line := range strings.Lines(strings.Join(blocks(t, "jinja"), "")) {
		template, want, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok {
			t.Fatalf("%q lacks its result", line)
		}
		set, _ := settings(t, map[string]string{"states/t.sls": "#!jinja|text\n" + template})
		got, err := answer(t, families.New(set), "slsutil.renderer", "salt://t.sls")
		if text := strings.TrimPrefix(value.Str(got), "#!jinja|text\n"); err != nil || text != want {
			t.Errorf("%s gives %q, %v; want %q", template, text, err, want)
		}
	}
}
