package statetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// note is a state function that breaks one rule, which the test chooses.
type note struct {
	Name   string `sls:"name"`
	Text   string `sls:"text"`
	Breaks string `sls:"breaks"`
}

func (n *note) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if n.Breaks == "check writes" {
		_ = n.write(h, "written by a check")
	}
	data, err := h.Files.ReadFile(n.Name)
	if err == nil && string(data) == n.Text && n.Breaks != "never done" {
		return module.Diff{}, nil
	}
	changes := value.NewMap("text", n.Text)
	if n.Breaks == "predicts" {
		changes = value.NewMap("text", "something else")
	}
	return module.Diff{Changes: changes, Planned: value.NewMap("planned", n.Name)}, nil
}

func (n *note) Apply(_ context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if n.Breaks == "fails" {
		return module.Report{}, errors.New("the note cannot be written")
	}
	if n.Breaks == "leaves" {
		_, _, _ = h.TempDir("x", 0o700)
	}
	return module.Report{Changes: value.NewMap("text", n.Text)}, n.write(h, n.Text)
}

func (n *note) write(h *host.Host, text string) error {
	return h.Files.Write(n.Name, host.NewFile{Content: strings.NewReader(text), UID: -1, GID: -1})
}

func suite(cases ...statetest.Case) statetest.Suite {
	return statetest.Suite{
		State: "note",
		Functions: func(*statetest.Host) module.Table {
			return module.Table{"written": func() module.Resource { return &note{} }}
		},
		Cases: cases,
	}
}

func written(breaks string) statetest.Case {
	return statetest.Case{
		Name: strings.ReplaceAll(breaks, " ", "-"), Function: "written",
		Arguments: value.NewMap("name", "/note", "text", "hello", "breaks", breaks),
		Tree:      statetest.Tree{"/old": statetest.File("x").With("0600", "games", "users")},
		Dry:       &statetest.Want{Result: nil, Changes: value.NewMap("planned", "/note")},
		First:     &statetest.Want{Result: true, Changes: value.NewMap("text", "hello")},
		Second:    &statetest.Want{Result: true, Changes: value.NewMap()},
		After: statetest.Tree{"/note": statetest.File("hello"),
			"/old": statetest.File("x").With("0600", "games", "users")},
	}
}

func TestConformantFunctionPasses(t *testing.T) {
	statetest.Run(t, suite(written("nothing")))
}

// broken returns functions that break a rule, with the expected messages of the suite.
func broken() map[string]string {
	return map[string]string{
		"check writes": "a dry run changes the host: /note is new",
		"never done":   "a second run still has something to do",
		"predicts":     "the check predicted the changes",
		"fails":        "first run: result is False, want True",
		"leaves":       "was left behind",
	}
}

// TestBroken is run by TestSuiteNamesTheBrokenRule in a separate process, since it must fail.
func TestBroken(t *testing.T) {
	if os.Getenv("STATETEST_BROKEN") == "" {
		t.Skip("this test fails on purpose; TestSuiteNamesTheBrokenRule runs it")
	}
	var cases []statetest.Case
	for breaks := range broken() {
		cases = append(cases, written(breaks))
	}
	secret := written("nothing")
	secret.Name, secret.Secrets = "secret", []string{"hello"}
	wrong := written("nothing")
	wrong.Name, wrong.After = "wrong", statetest.Tree{"/old": statetest.File("x").With("0644", "root", "")}
	statetest.Run(t, suite(append(cases, secret, wrong)...))
	statetest.Run(t, suite())
}

func TestSuiteNamesTheBrokenRule(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestBroken$", "-test.v")
	cmd.Env = append(os.Environ(), "STATETEST_BROKEN=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("the suite reports no failure")
	}
	messages := broken()
	messages["secret"] = "shows a secret"
	messages["wrong"] = `mode is "0600", want "0644", user is "games", want "root"`
	messages["no case"] = "note.written has no case"
	for what, message := range messages {
		if !strings.Contains(string(out), message) {
			t.Errorf("%s: the suite does not report %q:\n%s", what, message, out)
		}
	}
}

func TestLoad(t *testing.T) {
	file := t.TempDir() + "/notes.yaml"
	text := `
- case: a note
  written: {name: /note, text: hello}
  tree:
    /etc/: {mode: '0750', user: games}
    /etc/l: {link: motd}
    /etc/old: {content: x, modified: 1000}
  before:
  - written: {name: /other, text: 5}
  dry: {result: null, changes: {planned: /note}}
  first: {result: true, changes: {text: hello}}
  after: {/note: hello, /gone: null, /other: "5"}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := statetest.Load(t, file)
	if len(cases) != 1 || cases[0].Name != "notes/a note" || cases[0].Tree["/etc"].Mode != "0750" {
		t.Fatalf("read %+v", cases)
	}
	statetest.Run(t, suite(cases...))
}

func TestSnapshotDiff(t *testing.T) {
	h := statetest.NewHost(t)
	h.Build(t, statetest.Tree{"/a/f": statetest.File("1"), "/a/l": statetest.Link("f"), "/b": statetest.Dir()})
	before := h.Snapshot(t)
	if d := before.Diff(h.Snapshot(t)); len(d) > 0 {
		t.Fatalf("nothing changed, and the difference is %q", d)
	}
	h.Build(t, statetest.Tree{"/a/f": statetest.File("2"), "/a/l": statetest.Link("g"), "/c": statetest.File("")})
	if err := h.Files.Remove("/b"); err != nil {
		t.Fatal(err)
	}
	h.Users.Users = h.Users.Users[:1]
	got := strings.Join(before.Diff(h.Snapshot(t)), "\n")
	for _, want := range []string{`/a/f: content is "2", want "1"`, `/a/l: target is "g"`, "/b is gone", "/c is new",
		"the accounts: content"} {
		if !strings.Contains(got, want) {
			t.Errorf("the difference lacks %q:\n%s", want, got)
		}
	}
}
