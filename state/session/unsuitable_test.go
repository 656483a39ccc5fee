package session_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
)

// unsuitable are states that fail because of the content of the file PATH, which needs has, or because nothing is at
// PATH if needs is "".
func unsuitable() map[string]state {
	return map[string]state{
		"file.serialize not json": {"[{name: PATH}, {dataset: {a: b}}, {merge_if_exists: true}, {formatter: json}]", "{"},
		"file.serialize list":     {"[{name: PATH}, {dataset: {a: b}}, {merge_if_exists: true}, {formatter: json}]", "[1]"},
		"file.serialize deep": {"[{name: PATH}, {dataset: {a: b}}, {merge_if_exists: true}, {formatter: json}]",
			strings.Repeat("[", 5<<20)},
		"file.serialize bomb": {"[{name: PATH}, {dataset: {z: b}}, {merge_if_exists: true}, {formatter: yaml}]", aliases()},
		"file.serialize null": {"[{name: PATH}, {dataset: {a: b}}, {merge_if_exists: true}, {formatter: toml}]", "a = "},
		"file.blockreplace start": {"[{name: PATH}, {marker_start: AA}, {marker_end: BB}, {append_if_not_found: true}]",
			"AA\n"},
		"file.blockreplace none":   {"[{name: PATH}, {marker_start: AA}, {marker_end: BB}]", "x\n"},
		"file.blockreplace absent": {"[{name: PATH}, {marker_start: AA}, {marker_end: BB}]", ""},
		"file.blockreplace binary": {"[{name: PATH}, {marker_start: AA}, {marker_end: BB}]", "\x00\xff"},
		"file.line twice":          {"[{name: PATH}, {content: y}, {mode: ensure}, {after: x}]", "x\nx\n"},
		"file.line between": {"[{name: PATH}, {content: y}, {mode: ensure}, {after: a}, {before: b}]",
			"a\nc\nd\nb\n"},
		"file.line none":             {"[{name: PATH}, {content: y}, {mode: insert}, {after: a}]", "x\n"},
		"file.line binary":           {"[{name: PATH}, {content: y}, {mode: insert}, {location: end}]", "\x00\xff"},
		"file.line absent":           {"[{name: PATH}, {content: y}, {mode: insert}, {location: end}]", ""},
		"file.line made":             {"[{name: PATH}, {content: y}, {mode: insert}, {after: a}, {create: true}]", ""},
		"file.comment none":          {"[{name: PATH}, {regex: y}]", "x\n"},
		"file.comment inner":         {"[{name: PATH}, {regex: y}]", "xy\n"},
		"file.comment absent":        {"[{name: PATH}, {regex: y}]", ""},
		"file.uncomment none":        {"[{name: PATH}, {regex: y}]", "x\n"},
		"file.replace absent":        {"[{name: PATH}, {pattern: x}, {repl: y}]", ""},
		"file.replace binary":        {"[{name: PATH}, {pattern: x}, {repl: y}]", "\x00\xff"},
		"file.keyvalue absent":       {"[{name: PATH}, {key: a}, {value: b}]", ""},
		"file.exists absent":         {"[{name: PATH}]", ""},
		"file.append absent":         {"[{name: PATH/g}, {text: x}]", ""},
		"file.managed absent":        {"[{name: PATH/g}, {contents: x}]", ""},
		"file.managed source":        {"[{name: /etc/m}, {source: PATH}]", ""},
		"file.managed file source":   {"[{name: /etc/n}, {source: 'file://PATH'}]", ""},
		"file.managed sources":       {"[{name: /etc/o}, {source: [PATH, PATH2]}]", ""},
		"file.managed hash":          {"[{name: PATH2}, {source: PATH}, {user: ann}, {source_hash: 'sha256=SUM'}]", "x\n"},
		"file.copy absent":           {"[{name: /etc/c}, {source: PATH}]", ""},
		"file.copy to":               {"[{name: PATH/g}, {source: /etc/one}]", ""},
		"file.hardlink absent":       {"[{name: /etc/h}, {target: PATH}]", ""},
		"file.hardlink to":           {"[{name: PATH/g}, {target: /etc/one}]", ""},
		"file.symlink to":            {"[{name: PATH/g}, {target: /etc/one}]", ""},
		"file.touch to":              {"[{name: PATH/g}]", ""},
		"file.patch absent":          {"[{name: PATH}, {source: 'salt://p.patch'}]", ""},
		"ini.options_present absent": {"[{name: PATH/g}, {sections: {a: {b: c}}}]", ""},
		"archive.extracted absent":   {"[{name: /etc/a}, {source: PATH}, {archive_format: tar}, {skip_verify: true}]", ""},
		"cmd.run absent":             {"[{name: 'true'}, {cwd: PATH}]", ""},
	}
}

// declared are states that fail on every host, in whatever directory their paths are.
func declared() map[string]state {
	return map[string]state{
		"file.line location":         {"[{name: PATH}, {content: y}, {mode: insert}, {location: middle}]", "x\n"},
		"file.line pattern":          {"[{name: PATH}, {content: y}, {mode: insert}, {after: '('}]", "x\n"},
		"file.comment pattern":       {"[{name: PATH}, {regex: '('}]", "x\n"},
		"file.replace pattern":       {"[{name: PATH}, {pattern: '('}, {repl: y}]", "x\n"},
		"file.replace reference":     {"[{name: PATH}, {pattern: x}, {repl: '\\2'}]", "x\n"},
		"file.serialize format":      {"[{name: PATH}, {dataset: [a]}, {merge_if_exists: true}, {formatter: json}]", "{}"},
		"file.serialize list absent": {"[{name: PATH}, {dataset: [a]}, {merge_if_exists: true}, {formatter: json}]", ""},
		"file.serialize python absent": {"[{name: PATH}, {dataset: {a: b}}, {merge_if_exists: true}, {formatter: python}]",
			""},
		"file.managed tree": {"[{name: PATH}, {source: 'salt://none'}]", ""},
	}
}

// aliases returns a short YAML text of a mapping with billions of items.
func aliases() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 12 {
		items := strings.Repeat(fmt.Sprintf("*a%d, ", i), 9) + fmt.Sprintf("*a%d", i)
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, items)
	}
	return text
}

// TestUnsuitableFiles puts the content into the path of each state, or nothing. The failure counts as the host's in a
// directory that users can write to, unless it follows from the declaration.
func TestUnsuitableFiles(t *testing.T) {
	for _, open := range []bool{true, false} {
		for kind, states := range map[string]map[string]state{"unsuitable": unsuitable(), "declared": declared()} {
			t.Run(fmt.Sprintf("%s, for users %v", kind, open), func(t *testing.T) {
				t.Parallel()
				put := func(name, at string) error {
					if states[name].needs == "" {
						return nil
					}
					return os.WriteFile(at, []byte(states[name].needs), 0o644)
				}
				for name, r := range runObstructed(t, states, put, open) {
					by := r.Obstruction()
					counts := open && kind == "unsuitable" && !refused(r)
					switch {
					case r.Outcome != exec.Failed:
						t.Errorf("%s did not fail: %s", name, r.Comment)
					case (by != nil) != counts:
						t.Errorf("%s: the obstruction is %v: %s", name, by, r.Comment)
					case counts && (!strings.Contains(r.Comment, "any user can change /srv/data") ||
						!strings.Contains(r.Comment, "/states/t.sls:") || !strings.Contains(r.Hint, "tried again")):
						t.Errorf("%s: %s\nhint: %s", name, r.Comment, r.Hint)
					}
				}
			})
		}
	}
}
