package session_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestInvalidRetryAndOrderAreWarnings checks values of retry and order that Salt ignores.
func TestInvalidRetryAndOrderAreWarnings(t *testing.T) {
	set, dir := settings(t, map[string]string{"states/t.sls": `a:
  test.nop:
    - retry: 3
b:
  test.nop:
    - order: lst
c:
  test.nop:
    - retry: {atempts: 3, interval: x, until: true}
d:
  test.nop:
    - retry: True
    - order: last
e:
  test.configurable_test_state:
    - changes: Random
    - result: true
`})
	got, err := answer(t, families.New(set), "state.apply", "t")
	if err != nil {
		t.Fatal(err)
	}
	text := value.Repr(got)
	for _, want := range []string{
		dir + "/states/t.sls:3:7: retry 3 is not a mapping and means 2 attempts, 30 seconds apart",
		dir + "/states/t.sls:6:7: order 'lst' is invalid and has no effect: did you mean \"last\"?",
		"retry has no atempts: did you mean \"attempts\"?", "interval of retry is 'x' and has no effect",
	} {
		if !strings.Contains(strings.ReplaceAll(text, `\'`, `'`), want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if n := strings.Count(text, "'warnings'"); n != 3 {
		t.Errorf("%d states have warnings", n)
	}
}

// TestBackgroundIsRefused checks that the argument bg is refused, since a run would not wait for the command.
func TestBackgroundIsRefused(t *testing.T) {
	set, _ := settings(t, map[string]string{"states/t.sls": "sleep 1:\n  cmd.run:\n    - bg: True\n",
		"states/no.sls": "echo 1:\n  cmd.run:\n    - bg: False\n"})
	set.Strict = true
	s := families.New(set)
	_, err := s.Program(t.Context(), s.Named("t"))
	list := mustProblems(t, err)
	if len(list) != 1 || list[0].Pos.Line != 2 || !strings.Contains(list[0].Message,
		"commands do not run in the background") || !strings.Contains(list[0].Hint, "systemd-run") {
		t.Errorf("%v", list)
	}
	if _, err := s.Program(t.Context(), s.Named("no")); err != nil {
		t.Error(err)
	}
}

// TestAnIncludeOfNoNameEnds checks that compiling ends for an init.sls that includes its own directory as ".".
func TestAnIncludeOfNoNameEnds(t *testing.T) {
	set, _ := settings(t, map[string]string{"states/web/init.sls": "include: [.]\nx:\n  test.nop: []\n"})
	s, done := families.New(set), make(chan error, 1)
	go func() {
		_, err := s.Program(t.Context(), s.Named("web"))
		done <- err
	}()
	select {
	case err := <-done:
		if list := mustProblems(t, err); !strings.Contains(list[0].Message, `include "." names no other file`) {
			t.Error(list)
		}
	case <-time.After(time.Minute):
		t.Fatal("compiling does not end")
	}
}

// TestCircularImportsAreReportedOnce compiles two templates that import each other.
func TestCircularImportsAreReportedOnce(t *testing.T) {
	set, dir := settings(t, map[string]string{
		"states/t.sls":   "{% import 'a.jinja' as a %}\nx:\n  test.nop: []\n",
		"states/a.jinja": "{% import 'b.jinja' as b %}\n", "states/b.jinja": "{# b #}\n{% import 'a.jinja' as a %}\n",
	})
	s := families.New(set)
	_, err := s.Program(t.Context(), s.Named("t"))
	text := mustProblems(t, err)[0].Message
	a, b := dir+"/states/a.jinja:1:11", dir+"/states/b.jinja:2:11"
	if !strings.HasSuffix(text, "in a cycle: "+a+" -> "+b+" -> "+a) &&
		!strings.HasSuffix(text, "in a cycle: "+b+" -> "+a+" -> "+b) || strings.Contains(text, "called from") {
		t.Error(text)
	}
}

// TestUnmatchedRequisitesAreReportedWithOtherMistakes checks requisites without a match beside a file that does not
// compile. Requisites that this file may satisfy are not reported.
func TestUnmatchedRequisitesAreReportedWithOtherMistakes(t *testing.T) {
	const good = "b:\n  test.nop:\n    - require:\n      - test: gone\n      - test: perhaps\n      - test: named\nc:\n" +
		"  test.nop:\n    - names: [named]\n"
	for name, c := range map[string]struct {
		broken string
		want   int
	}{
		"a file that names a required state": {"perhaps:\n  test.nop: [\n", 2},
		"a file with an include":             {"include:\n  - more\nperhaps:\n  test.nop: [\n", 1},
		"a mistake in a declaration":         {"perhaps:\n  test.nop: 5\n", 2},
	} {
		set, _ := settings(t, map[string]string{"states/top.sls": "base:\n  '*': [broken, good]\n", "states/good.sls": good,
			"states/broken.sls": c.broken})
		_, err := families.New(set).Call(t.Context(), "state.apply", nil, value.NewMap(), nil)
		list := mustProblems(t, err)
		if len(list) != c.want || strings.Contains(list.Error(), "there is no test: gone") != (c.want == 2) ||
			strings.Contains(list.Error(), "there is no test: perhaps") {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// TestCausesOfMissingSources checks errors whose hint has to help when it is followed.
func TestCausesOfMissingSources(t *testing.T) {
	root := t.TempDir()
	hosttest.Put(t, filepath.Join(root, "srv/file"), "x", 0o644)
	hosttest.Put(t, filepath.Join(root, "states/t.sls"), `
misspelt:
  file.managed: [{name: /srv/a}, {source: 'slat://m.sls'}]
unknown:
  file.managed: [{name: /srv/a}, {source: 'gopher://h/m.sls'}, {skip_verify: true}]
beside:
  file.managed: [{name: /srv/file/sub/x}, {contents: x}]
`, 0o644)
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{
		"misspelt": {`there is no kind of source called "slat"`, `did you mean "salt"?`},
		"unknown":  {`there is no kind of source called "gopher"`, "there are: salt, file"},
		"beside":   {"/srv/file is not a directory, but a regular file", ""},
	}
	for _, r := range runStates(t, h, "/states", false) {
		if w := want[r.ID()]; !strings.Contains(r.Comment, w[0]) || !strings.Contains(r.Hint, w[1]) {
			t.Errorf("%s: %s\nhint: %s", r.ID(), r.Comment, r.Hint)
		}
	}
}
