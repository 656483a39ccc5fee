package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// shell is a user at a workstation: a directory, an environment, and a store.
type shell struct {
	t   *testing.T
	dir string
	env map[string]string
	out string // of the last command
	err string
	all strings.Builder // of all commands
}

// newShell returns a workstation with an empty store.
func newShell(t *testing.T) *shell {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &shell{t: t, dir: dir, env: map[string]string{"CORPUS_STORE": "file://" + dir + "/store",
		"CORPUS_KEYS": dir + "/keys"}}
}

// newStore returns a workstation with a store that it has set up, with its own keys.
func newStore(t *testing.T) *shell {
	t.Helper()
	s := newShell(t)
	s.expect(0, "keys new", "made")
	s.expect(0, "store init", "set up")
	return s
}

// path returns the path of a file of the workstation.
func (s *shell) path(name string) string { return filepath.Join(s.dir, name) }

// run runs a command and returns its exit code. A @ starts the name of a file of the workstation.
func (s *shell) run(line string) int {
	s.t.Helper()
	return s.runWords(strings.Fields(line))
}

// runWords is like run for words that may contain spaces.
func (s *shell) runWords(words []string) int {
	s.t.Helper()
	var args []string
	for _, word := range words {
		if !strings.Contains(word, "://") || strings.Contains(word, "://@") { // otherwise it belongs to a login
			word = strings.ReplaceAll(word, "@", s.dir+"/")
		}
		args = append(args, word)
	}
	var out, errs bytes.Buffer
	code := Main(context.Background(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs,
		Getenv: func(k string) string { return s.env[k] }})
	s.out, s.err = out.String(), errs.String()
	s.all.WriteString(s.out + s.err)
	return code
}

// expect runs a command and checks its exit code and a part of its output.
func (s *shell) expect(code int, line, says string) {
	s.t.Helper()
	if got := s.run(line); got != code {
		s.t.Fatalf("corpus %s: exit code %d, want %d\n%s%s", line, got, code, s.out, s.err)
	}
	if !strings.Contains(s.out+s.err, says) {
		s.t.Errorf("corpus %s prints\n%s%swant %q in it", line, s.out, s.err, says)
	}
	if code != 0 && code != 3 && !strings.Contains(s.err, "hint: ") {
		s.t.Errorf("corpus %s fails without a hint:\n%s", line, s.err)
	}
}

// json runs a command with --json and decodes its output.
func (s *shell) json(line string, into any) {
	s.t.Helper()
	if code := s.run(line + " --json"); code != 0 && code != 3 {
		s.t.Fatalf("corpus %s: exit code %d\n%s%s", line, code, s.out, s.err)
	}
	if err := json.Unmarshal([]byte(s.out), into); err != nil {
		s.t.Fatalf("corpus %s --json: %v\n%s", line, err, s.out)
	}
}

// artifact builds an artifact with one file.
func (s *shell) artifact(name, content string) {
	s.t.Helper()
	tree := s.path(name + ".tree")
	if err := os.MkdirAll(tree, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.write(name+".tree/app", content)
	s.expect(0, "build @"+name+".tree -o @"+name+".tar.zst", "built")
}

func (s *shell) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shell) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// move moves files of the keys to another person.
func (s *shell) move(to string, names ...string) {
	s.t.Helper()
	for _, name := range names {
		file := s.path(filepath.Join(to, filepath.Base(name)))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Rename(s.path(name), file); err != nil {
			s.t.Fatal(err)
		}
	}
}

// copy copies a file for another person.
func (s *shell) copy(from, to string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(to)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.write(to, s.read(from))
}
