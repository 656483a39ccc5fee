package session_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
)

// TestMisspelledRequisitesAndGuardsAreMistakes checks that compiling fails for a misspelled requisite or guard, without
// which its step would run unguarded.
func TestMisspelledRequisitesAndGuardsAreMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ function, argument, meant string }{
		{"cmd.run", "unles", "unless"}, {"cmd.run", "onlyfi", "onlyif"}, {"cmd.run", "requre", "require"},
		{"cmd.run", "require_i", "require_in"}, {"cmd.run", "onchnges", "onchanges"}, {"cmd.run", "watchin", "watch_in"},
		{"cmd.run", "prereqs", "prereq"}, {"cmd.run", "creats", "creates"}, {"cmd.run", "check_cm", "check_cmd"},
		{"cmd.run", "onfial", "onfail"}, {"cmd.run", "listn", "listen"}, {"cmd.run", "use_i", "use_in"},
		{"file.managed", "requires_in", "require_in"}, {"test.nop", "requre", "require"},
		{"test.nop", "requires", "require"}, {"service.running", "required", "require"}, {"cmd.run", "uses", "use"},
		{"iptables.append", "onyif", "onlyif"}, // takes arguments of any name
	} {
		_, err := strictProgram(t, c.function, c.argument)
		if err == nil {
			t.Errorf("%s with %s compiles", c.function, c.argument)
			continue
		}
		list := mustProblems(t, err)
		if len(list) != 1 || list[0].Pos.Line != 3 || list[0].Pos.Col < 1 || !strings.Contains(list[0].Hint, c.meant+",") {
			t.Errorf("%s with %s: %v", c.function, c.argument, list)
		}
	}
}

// TestUnknownArgumentsStayWarnings checks that other unknown arguments are warnings, also those that resemble a
// requisite, since formulas have them.
func TestUnknownArgumentsStayWarnings(t *testing.T) {
	t.Parallel()
	for function, argument := range map[string]string{
		"test.nop": "user", "cmd.run": "match", "iptables.append": "match", "file.directory": "create",
		"pkg.installed": "colour",
	} {
		if _, err := strictProgram(t, function, argument); err != nil {
			t.Errorf("%s with %s: %v", function, argument, err)
		}
	}
}

// strictProgram compiles one state with an argument as a deploy does.
func strictProgram(t *testing.T, function, argument string) (any, error) {
	t.Helper()
	text := "s:\n  " + function + ":\n    - " + argument + ": []\n"
	if function == "iptables.append" {
		text += "    - chain: INPUT\n"
	}
	set, _ := settings(t, map[string]string{"states/t.sls": text})
	set.Strict = true
	s := families.New(set)
	return s.Program(t.Context(), s.Named("t"))
}
