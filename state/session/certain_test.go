package session_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
)

// TestMissingSourcesAreMistakes checks that compiling fails for a missing file of the tree if every run would read it.
func TestMissingSourcesAreMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/a:\n  file.managed:\n    - source: salt://web/confg":                                            "t.sls:3:7",
		"/a:\n  file.recurse:\n    - source: salt://nope":                                                 "t.sls:3:7",
		"/a:\n  file.managed:\n    - source:\n      - salt://x\n      - salt://y":                         "t.sls:3:7",
		"/a:\n  file.managed:\n    - source: salt://web/config":                                           "",
		"/a:\n  file.recurse:\n    - source: salt://web":                                                  "",
		"/a:\n  file.managed:\n    - source:\n      - salt://x\n      - salt://web/config":                "",
		"/a:\n  file.managed:\n    - source:\n      - salt://x\n      - http://127.0.0.1:1/y":             "",
		"/a:\n  file.managed:\n    - source: salt://nope\n    - onlyif: 'false'":                          "",
		"/a:\n  file.managed:\n    - source: salt://nope\n    - replace: false":                           "",
		"/a:\n  file.managed:\n    - source: salt://web/config?saltenv=base\n    - template: jinja":       "",
		"/a:\n  file.managed:\n    - source: /nope":                                                       "",
		"/a:\n  file.managed:\n    - source: salt://nope\n    - onchanges:\n      - test: b\nb: test.nop": "",
	} {
		set, _ := settings(t, map[string]string{"states/t.sls": text + "\n", "states/web/config": "x"})
		set.Strict = true
		s := families.New(set)
		_, err := s.Program(t.Context(), s.Named("t"))
		if want == "" {
			if err != nil {
				t.Errorf("%s\n%v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "is not in the state tree") {
			t.Errorf("%s\nwant a mistake at %s: %v", text, want, err)
		}
	}
}

// TestUnknownFunctionsOfGuardsAreMistakes checks that compiling fails for a guard whose function does not exist, with a
// similar name. A function whose program is missing is no mistake, since an earlier state may install the program.
func TestUnknownFunctionsOfGuardsAreMistakes(t *testing.T) {
	t.Parallel()
	for function, hint := range map[string]string{
		"file.exists_file": `"file.file_exists"`, "file.is_lnk": `"file.is_link"`, "file.file_exists": "",
		"postgres.db_exists": "",
	} {
		set, _ := settings(t, map[string]string{
			"states/t.sls": "a:\n  test.nop:\n    - onlyif:\n      - fun: " + function + "\n        path: /etc\n",
		})
		set.Strict = true
		s := families.New(set)
		_, err := s.Program(t.Context(), s.Named("t"))
		if hint == "" {
			if err != nil {
				t.Errorf("%s: %v", function, err)
			}
			continue
		}
		list := mustProblems(t, err)
		if len(list) != 1 || list[0].Pos.Line != 3 || !strings.Contains(list[0].Hint, hint) {
			t.Errorf("%s: %v, hint %q", function, list, list[0].Hint)
		}
	}
}

// TestContradictoryArgumentsAreMistakes checks that compiling fails for arguments that contradict each other or that an
// account file cannot hold.
func TestContradictoryArgumentsAreMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ann:\n  user.present:\n    - fullname: Ann, room 5\n    - require:\n      - test: b\nb: test.nop": "has a comma",
		"x:\n  pkg.installed:\n    - pkgs: [a]\n    - sources:\n      - b: /b.deb": "cannot both " +
			"be given",
	} {
		set, _ := settings(t, map[string]string{"states/t.sls": text + "\n"})
		set.Strict = true
		s := families.New(set)
		_, err := s.Program(t.Context(), s.Named("t"))
		if list := mustProblems(t, err); len(list) != 1 || list[0].Pos.Line != 2 || !strings.Contains(list[0].Message, want) {
			t.Errorf("%s\n%v", text, list)
		}
	}
}
