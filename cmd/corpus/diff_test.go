package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/check"
)

// publishTree builds a tree of files and publishes it.
func (s *shell) publishTree(version string, files map[string]string) {
	s.t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(s.path("tree-"+version+"/"+name)), 0o755); err != nil {
			s.t.Fatal(err)
		}
		s.write("tree-"+version+"/"+name, text)
	}
	s.expect(0, "build @tree-"+version+" -o @"+version+".tar.zst", "")
	s.expect(0, "publish myapp "+version+" @"+version+".tar.zst --channel testing", "")
}

func TestDiffOfReleases(t *testing.T) {
	s := newStore(t)
	const secret = "swordfish"
	s.publishTree("1.0", map[string]string{
		"states/top.sls": "base: {'*': [a]}\n", "bin/app": "one\n", "units/app.service": "[Service]\n",
		"states/a.sls": "a:\n  file.managed:\n    - name: /etc/a\n    - contents: " + secret + "\nold:\n  test.nop: []\n",
	})
	s.expect(0, "promote myapp testing production", "")
	s.publishTree("1.1", map[string]string{
		"states/top.sls": "base: {'*': [a], 'os:Rocky': [{match: grain}, b]}\n", "bin/app": "two\n",
		"units/app.service": "[Service]\nType=exec\n",
		"states/a.sls":      "a:\n  file.managed:\n    - name: /etc/a\n    - contents: " + secret + "2\n",
		"states/b.sls":      "b: {test.nop: []}\n",
	})
	var d releaseDiff
	s.json("diff myapp production testing", &d)
	if d.Old.Version != "1.0" || d.New.Version != "1.1" || !slices.Equal(d.Files.Added, []string{"states/b.sls"}) ||
		!slices.Equal(d.Files.Changed, []string{"bin/app", "states/a.sls", "states/top.sls", "units/app.service"}) ||
		!slices.Equal(d.Units, []string{"units/app.service"}) || d.Listed {
		t.Errorf("the releases differ by %+v", d)
	}
	want := map[string]check.StateChange{
		"file.managed a (/etc/a)": {Change: "changed", Arguments: []string{"contents"}}, "test.nop b": {Change: "added"},
		"test.nop old": {Change: "removed"},
	}
	for _, got := range d.States {
		hosts := map[string]int{"test.nop b": 2}[got.State]
		if hosts == 0 {
			hosts = 6
		}
		if w, known := want[got.State]; !known || got.Change != w.Change || !slices.Equal(got.Arguments, w.Arguments) ||
			len(got.Hosts) != hosts {
			t.Errorf("a state differs by %+v", got)
		}
		delete(want, got.State)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
	s.expect(0, "diff myapp 1.0 1.1", "~ file.managed a (/etc/a): contents\n")
	s.expect(0, "diff myapp 1.1 1.1", "states: 0 differ on 6 hosts\n")
	s.expect(2, "diff myapp 1.0 1.2", "there is no version or channel of myapp named 1.2")
	s.expect(2, "diff myap 1.0 1.1", `did you mean "myapp"?`)
}
