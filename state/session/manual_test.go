package session_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/function/manual"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// everyProgram lists the programs without which some functions do not exist.
var everyProgram = map[string]string{
	"usr/bin/docker": "", "usr/bin/psql": "", "usr/bin/pip3": "", "usr/bin/git": "", "usr/bin/crontab": "",
}

// everyFunction returns a session on a host that has the programs of everyProgram.
func everyFunction(t *testing.T) *session.Session {
	t.Helper()
	s, root := sessionBelow(t, everyProgram, nil)
	for name := range everyProgram {
		if err := os.Chmod(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestManual checks that the manual explains each function with a sentence, its arguments and an example, and no
// others.
func TestManual(t *testing.T) {
	s := everyFunction(t)
	for _, which := range []struct {
		name, specs string
		book        manual.Book
	}{{"functions.txt", "sys.argspec", manual.Functions()}, {"states.txt", "sys.state_argspec", manual.States()}} {
		specs := called(t, s, which.specs)
		for name, spec := range specs.All() {
			explained(t, which.name, value.Str(name), which.book, spec.(*value.Map))
		}
		for name := range which.book {
			if !specs.Has(name) {
				t.Errorf("%s explains %s, which does not exist", which.name, name)
			}
		}
	}
	for _, name := range session.StateFunctions() {
		if manual.Functions()[name].Sentence == "" {
			t.Errorf("functions.txt does not explain %s", name)
		}
	}
}

func called(t *testing.T, s *session.Session, name string, args ...any) *value.Map {
	t.Helper()
	answer, err := s.Call(context.Background(), name, args, value.NewMap(), nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return answer.Value.(*value.Map)
}

func explained(t *testing.T, file, name string, book manual.Book, spec *value.Map) {
	t.Helper()
	entry := book[name]
	if !strings.HasSuffix(entry.Sentence, ".") {
		t.Errorf("%s lacks a sentence about %s", file, name)
	}
	var arguments []string
	names, _ := spec.Value("args").(*value.List) // nil for none
	if names == nil {
		names = value.NewList()
	}
	for _, a := range names.Items {
		arguments = append(arguments, value.Str(a))
		if entry.Sentence != "" && entry.Meaning(value.Str(a)) == "" {
			t.Errorf("%s does not explain argument %s of %s", file, value.Str(a), name)
		}
	}
	open := value.Truth(spec.Value("kwargs"))
	for _, own := range entry.Own() {
		if !open && !slices.Contains(arguments, own) {
			t.Errorf("%s explains argument %s of %s, which does not exist", file, own, name)
		}
	}
}

// TestManualExamples checks that the example of each state function compiles without warnings.
func TestManualExamples(t *testing.T) {
	s := everyFunction(t)
	for name, entry := range manual.States() {
		answer, err := s.Call(context.Background(), "state.template_str", []any{entry.Declaration(name) + "\n"},
			value.NewMap("test", true), nil)
		if err != nil {
			t.Errorf("the example of %s does not compile: %v\n%s", name, err, entry.Declaration(name))
			continue
		}
		for _, result := range answer.Value.(*value.Map).All() {
			if text := value.Str(result); strings.Contains(text, "has no argument") {
				t.Errorf("the example of %s: %s", name, text)
			}
		}
	}
}

// TestSysDoc checks the texts of sys.doc.
func TestSysDoc(t *testing.T) {
	s := everyFunction(t)
	want := `archive.gzip(sourcefile, template=None, runas=None, options=None)

Compresses a file to FILE.gz and removes the file.

sourcefile
    the file
template
    refused here
runas
    user to run as
options
    options as the program takes them

CLI Example:

    corpus-agent call archive.gzip /srv/dump.sql`
	if got := value.Str(called(t, s, "sys.doc", "archive.gzip").Value("archive.gzip")); got != want {
		t.Errorf("sys.doc archive.gzip:\n%s", got)
	}
	text := value.Str(called(t, s, "sys.state_doc", "file.symlink").Value("file.symlink"))
	for _, part := range []string{"file.symlink(name, target, ", "\n\nKeeps a symbolic link.\n\n",
		"target\n    what it leads to\n",
		"Example:\n\n    /srv/current:\n      file.symlink:\n        - target: /srv/app-1.2"} {
		if !strings.Contains(text, part) {
			t.Errorf("sys.state_doc file.symlink lacks %q:\n%s", part, text)
		}
	}
	if n := called(t, s, "sys.doc", "state").Len(); n != len(session.StateFunctions()) {
		t.Errorf("sys.doc state explains %d functions of %d", n, len(session.StateFunctions()))
	}
	if spec := value.Str(called(t, s, "sys.argspec", "state.sls_id").Value("state.sls_id")); !strings.Contains(spec,
		"'id_', 'mods'") {
		t.Errorf("sys.argspec state.sls_id: %s", spec)
	}
}
