package outputter_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/report/outputter"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func text(t *testing.T, answer any, o outputter.Options) string {
	t.Helper()
	s, err := outputter.Text(answer, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestData(t *testing.T) {
	data := value.NewMap("b", value.NewList(1, "two\nlines", value.NewMap("x", nil), value.NewList("y", "z")), "a", true,
		"empty", value.NewMap())
	if err := data.SetKey(3, 1.0); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"nested": `local:
    ----------
    3:
        1.0
    a:
        True
    b:
        - 1
        - two
          lines
        |_
          ----------
          x:
              None
        |_
          - y
          - z
    empty:
        ----------
`,
		"json": `{
    "local": {
        "b": [
            1,
            "two\nlines",
            {
                "x": null
            },
            [
                "y",
                "z"
            ]
        ],
        "a": true,
        "empty": {},
        "3": 1.0
    }
}
`,
		"yaml": `local:
  b:
  - 1
  - 'two

    lines'
  - x: null
  - - y
    - z
  a: true
  empty: {}
  3: 1.0
`,
		"txt": "local: {'b': [1, 'two\\nlines', {'x': None}, ['y', 'z']], 'a': True, 'empty': {}, 3: 1.0}\n",
	} {
		if got := text(t, data, outputter.Options{Format: format}); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", format, got, want)
		}
	}
	if got := text(t, "one\ntwo", outputter.Options{Format: "txt"}); got != "local: one\nlocal: two\n" {
		t.Errorf("lines are %q", got)
	}
	for format, want := range map[string]string{"json": "\"b'\\\\xff'\"", "nested": `\xff`} {
		if got := text(t, []byte{0xff}, outputter.Options{Format: format}); !strings.Contains(got, want) {
			t.Errorf("bytes are printed as %s: %q, want %q", format, got, want)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := outputter.Text(1, outputter.Options{Format: "jsno"})
	if err == nil || diag.HintOf(err) != `did you mean "json"? [C077]` {
		t.Errorf("error is %v, hint %q", err, diag.HintOf(err))
	}
}

// run is one result of each kind.
func run() *value.Map {
	result := func(n int, id, name string, result any, changes *value.Map, comment string) *value.Map {
		return value.NewMap("__id__", id, "name", name, "result", result, "changes", changes, "comment", comment,
			"__run_num__", n,
			"start_time", "10:00:00.000000", "duration", 1.5)
	}
	warned := result(3, "maybe", "maybe", nil, value.NewMap("diff", "---\n+++\n"), "would change")
	warned.Set("warnings", value.Strings("look out"))
	return value.NewMap(
		"test_|-bad_|-bad_|-nop", result(2, "bad", "bad", false, value.NewMap(), "one\ntwo"),
		"test_|-ok_|-ok_|-nop", result(0, "ok", "ok", true, value.NewMap(), "fine"),
		"file_|-maybe_|-maybe_|-managed", warned,
		"cmd_|-done_|-echo x_|-run", result(1, "done", "echo x", true, value.NewMap("retcode", 0), "ran"))
}

const fullOutput = `local:
----------
          ID: ok
    Function: test.nop
      Result: True
     Comment: fine
     Started: 10:00:00.000000
    Duration: 1.5 ms
     Changes:   
----------
          ID: done
    Function: cmd.run
        Name: echo x
      Result: True
     Comment: ran
     Started: 10:00:00.000000
    Duration: 1.5 ms
     Changes:   
              ----------
              retcode:
                  0
----------
          ID: bad
    Function: test.nop
      Result: False
     Comment: one
              two
     Started: 10:00:00.000000
    Duration: 1.5 ms
     Changes:   
----------
          ID: maybe
    Function: file.managed
      Result: None
     Comment: would change
     Started: 10:00:00.000000
    Duration: 1.5 ms
     Changes:   
              ----------
              diff:
                  ---
                  +++
    Warnings: look out

Summary for local
------------
Succeeded: 3 (unchanged=1, changed=2)
Failed:    1
Warnings:  1
------------
Total states run:     4
Total run time:   6.000 ms
`

func TestResults(t *testing.T) {
	if got := text(t, run(), outputter.Options{Format: "highstate"}); got != fullOutput {
		t.Errorf("full output is\n%s", got)
	}
}

// TestModes checks which results get a line and which a block.
func TestModes(t *testing.T) {
	for mode, want := range map[string]struct{ lines, blocks string }{
		"full":    {"", "ok done bad maybe"},
		"terse":   {"ok:Clean echo x:Changed bad:Failed maybe:Differs", ""},
		"mixed":   {"ok:Clean echo x:Changed maybe:Differs", "bad"},
		"changes": {"ok:Clean", "done bad maybe"},
	} {
		var lines, blocks []string
		for line := range strings.Lines(text(t, run(), outputter.Options{Format: "highstate", Mode: mode})) {
			line = strings.TrimSpace(line)
			if name, ok := strings.CutPrefix(line, "Name: "); ok && strings.Contains(name, " - Result: ") {
				name, rest, _ := strings.Cut(name, " - Function: ")
				word, _, _ := strings.Cut(strings.SplitN(rest, "Result: ", 2)[1], " - Started: 10:00:00.000000 - Duration: 1.5 ms")
				lines = append(lines, name+":"+word)
			}
			if id, ok := strings.CutPrefix(line, "ID: "); ok {
				blocks = append(blocks, id)
			}
		}
		if got := strings.Join(lines, " "); got != want.lines {
			t.Errorf("%s has the lines %q, want %q", mode, got, want.lines)
		}
		if got := strings.Join(blocks, " "); got != want.blocks {
			t.Errorf("%s has the blocks %q, want %q", mode, got, want.blocks)
		}
	}
}

// TestTerseOutputHasTheReasonOfAFailure searches terse output for the comment of the state that failed, and no other.
func TestTerseOutputHasTheReasonOfAFailure(t *testing.T) {
	got := text(t, run(), outputter.Options{Format: "highstate", Mode: "terse"})
	_, after, _ := strings.Cut(got, "Result: Failed")
	_, after, _ = strings.Cut(after, "\n")
	if !strings.HasPrefix(after, "    Comment: ") || strings.Count(got, "Comment: ") != 1 {
		t.Errorf("terse output is\n%s", got)
	}
}

func TestBriefOmitsUnchangedStates(t *testing.T) {
	got := text(t, run(), outputter.Options{Format: "highstate", Brief: true})
	if strings.Contains(got, "ID: ok") || !strings.Contains(got, "ID: bad") ||
		!strings.Contains(got, "Total states run:     4") {
		t.Errorf("brief output is\n%s", got)
	}
}

func TestProblemsAndOtherData(t *testing.T) {
	got := text(t, value.Strings("web.sls:1:1: wrong\nhint: mend it"), outputter.Options{Format: "highstate"})
	if want := "    web.sls:1:1: wrong\n    hint: mend it\n"; !strings.HasSuffix(got, want) {
		t.Errorf("problems are\n%s", got)
	}
	if got := text(t, value.NewMap("a", 1),
		outputter.Options{Format: "highstate"}); got != "local:\n    ----------\n    a:\n        1\n" {
		t.Errorf("other data is\n%s", got)
	}
}

func TestLongRuns(t *testing.T) {
	all := value.NewMap()
	for i := range 12 {
		id := strings.Repeat("x", i+1)
		all.Set("test_|-"+id+"_|-"+id+"_|-nop", value.NewMap("result", true, "changes", value.NewMap(), "comment", "",
			"duration", 100.0, "__run_num__", i, "name", id))
	}
	got := text(t, all, outputter.Options{Format: "highstate", Mode: "terse"})
	if !strings.HasSuffix(got,
		"-------------\nSucceeded: 12\nFailed:     0\n-------------\nTotal states run:     12\nTotal run "+
			"time:    1.200 s\n") {
		t.Errorf("the summary is\n%s", got)
	}
}

func TestColor(t *testing.T) {
	plain := text(t, run(), outputter.Options{Format: "highstate"})
	colored := text(t, run(), outputter.Options{Format: "highstate", Color: true})
	if strings.Contains(plain, "\x1b") || !strings.Contains(colored, "\x1b[0;31m          ID: bad\x1b[0m") {
		t.Errorf("with colour:\n%q", colored)
	}
}

// TestWarningsOfACleanState searches the output of every mode for the text of a warning of a state without changes.
func TestWarningsOfACleanState(t *testing.T) {
	answer := value.NewMap("file_|-a_|-/a_|-managed", value.NewMap("__id__", "a", "name", "/a", "result", true, "changes",
		value.NewMap(),
		"comment", "fine", "__run_num__", 0, "warnings", value.Strings("file.managed has no argument conten\nlook it up")),
		"test_|-b_|-b_|-nop", value.NewMap("__id__", "b", "name", "b", "result", true, "changes", value.NewMap(),
			"__run_num__", 1))
	for _, brief := range []bool{false, true} {
		for _, mode := range []string{"full", "terse", "mixed", "changes"} {
			got := text(t, answer, outputter.Options{Format: "highstate", Mode: mode, Brief: brief})
			for _, want := range []string{"/a", "file.managed",
				"Warnings: file.managed has no argument conten\n              look it up\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("mode %s, brief %v: %q is missing in\n%s", mode, brief, want, got)
				}
			}
			if brief && strings.Contains(got, "test.nop") {
				t.Errorf("mode %s: brief output has a state that needed no change:\n%s", mode, got)
			}
		}
	}
}

// TestOrderOfYAML compares with Salt, which sorts dict and keeps the order of OrderedDict.
func TestOrderOfYAML(t *testing.T) {
	for want, answer := range map[string]*value.Map{"local:\n  a: 1\n  b: 2\n": value.NewMap("b", 2, "a", 1).Plain(),
		"local:\n  b: 2\n  a: 1\n": value.NewMap("b", 2, "a", 1)} {
		if got := text(t, answer, outputter.Options{Format: "yaml"}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNestedKeepsTheOrderOfOrderedMappings compares with Salt, for the result of a function in Python.
func TestNestedKeepsTheOrderOfOrderedMappings(t *testing.T) {
	answer := value.NewMap("z", value.NewMap("b", 2, "a", 1).Plain(), "a", 1)
	want := "local:\n    ----------\n    z:\n        ----------\n        a:\n            1\n        b:\n            2\n" +
		"    a:\n        1\n"
	if got := text(t, answer, outputter.Options{Format: "nested", Ordered: true}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBytesInYAML compares with Salt.
func TestBytesInYAML(t *testing.T) {
	want := "local: !!binary |\n  YWJj\n"
	if got := text(t, []byte("abc"), outputter.Options{Format: "yaml"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLineBreaksOfUnicode compares with Salt, whose nested form splits a text at them.
func TestLineBreaksOfUnicode(t *testing.T) {
	want := "local:\n    a\n    b\n"
	if got := text(t, "a\u2028b\u2029", outputter.Options{Format: "nested"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
