package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging"
)

// TestStarterTrees makes a tree of each kind, checks it, builds it and publishes it.
func TestStarterTrees(t *testing.T) {
	s := newStore(t)
	for _, kind := range packaging.StarterKinds() {
		name := "my-" + kind
		if kind == "base" || kind == "cloud" {
			name = kind
		}
		var b startedTree
		s.json("init @"+name+" --kind "+kind, &b)
		if b.Name != name || !slices.Contains(b.Files, "corpus.yaml") {
			t.Errorf("%s has %+v", kind, b)
		}
		for _, file := range b.Files {
			if text := s.read(name + "/" + file); strings.Contains(text, "myapp") || strings.Contains(text, "MYAPP") {
				t.Errorf("%s: %s has the name of the starter tree:\n%s", kind, file, text)
			}
		}
		s.expect(0, "check @"+name, " 0 mistakes, 0 notes")
		s.expect(0, "build @"+name+" --version 0.1 -o @"+name+".tar.zst", "built")
		if strings.Contains(s.err, "warning") {
			t.Errorf("building %s prints %s", kind, s.err)
		}
		s.expect(0, "publish "+name+" 0.1 @"+name+".tar.zst --channel testing", "")
		s.expect(2, "init @"+name+" --kind "+kind, "is there already")
	}
	t.Chdir(t.TempDir())
	if got := s.runWords([]string{"init", "", "--kind", "go", "--name", "app"}); got != 2 ||
		!strings.Contains(s.err, "hint: name a new directory") {
		t.Errorf("an empty name: exit code %d, %s", got, s.err)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("an empty name filled the current directory with %v, %v", files, err)
	}
	s.expect(2, "check @nonexistent", "hint: give the directory of a tree")
	s.expect(2, "build @nonexistent --version 1 -o @x.tar.zst", "hint: give the directory whose content is built")
	s.expect(2, "init @other", "no kind of tree was given")
	s.expect(2, "init @other --kind rust", "kinds are base, cloud, go")
	s.expect(2, "init @other --kind go --name a/b", "hint: give the project another name")
}
