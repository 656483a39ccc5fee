package file

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestOldSecretsAreNotShown checks that no state shows what was in a file that not every user may read, before or
// after the change: the secret of an earlier release is not in the pillar any more, so no redactor finds it.
func TestOldSecretsAreNotShown(t *testing.T) {
	states := map[string]*value.Map{
		"managed":      value.NewMap("contents", "password=\n"),
		"append":       value.NewMap("text", "more"),
		"prepend":      value.NewMap("text", "more"),
		"replace":      value.NewMap("pattern", "password=.*", "repl", "password="),
		"line":         value.NewMap("mode", "replace", "match", "password", "content", "password="),
		"comment":      value.NewMap("regex", "^password"),
		"keyvalue":     value.NewMap("key", "password", "value", "none"),
		"blockreplace": value.NewMap("marker_start", "# a", "marker_end", "# b", "content", "x", "append_if_not_found", true),
		"serialize":    value.NewMap("dataset", value.NewMap("password", "new"), "serializer", "json"),
	}
	for name, args := range states {
		for of, modes := range map[string][2]os.FileMode{
			"file": {0o640, 0o755}, "directory": {0o644, 0o750}, "public file": {0o644, 0o755},
		} {
			t.Run(name+" "+of, func(t *testing.T) {
				shown := changesOf(t, name, args, modes[0], modes[1])
				if strings.Contains(shown, "hunter2-old") != (of == "public file") {
					t.Errorf("the changes are %s", shown)
				}
			})
		}
	}
	if shown := changesOf(t, "managed", value.NewMap("contents", "x\n", "mode", "0640"), 0o644, 0o755); strings.Contains(
		shown, "hunter2-old") {
		t.Errorf("of a file that becomes private, the changes are %s", shown)
	}
}

// TestSecretsOfTheRunAreNotShown checks that no state shows a difference with a secret that the run knows, whether the
// file had it or gets it, and that it shows the difference without one.
func TestSecretsOfTheRunAreNotShown(t *testing.T) {
	inputs := Inputs{Secret: func(text string) bool { return strings.Contains(text, "hunter2") }}
	for name, args := range map[string]func(text string) *value.Map{
		"managed": func(text string) *value.Map { return value.NewMap("contents", "user=app\npassword="+text+"\n") },
		"append":  func(text string) *value.Map { return value.NewMap("text", text) },
		"prepend": func(text string) *value.Map { return value.NewMap("text", text) },
		"replace": func(text string) *value.Map { return value.NewMap("pattern", "app", "repl", text) },
		"line":    func(text string) *value.Map { return value.NewMap("mode", "ensure", "after", "app", "content", text) },
		"blockreplace": func(text string) *value.Map {
			return value.NewMap("marker_start", "# a", "marker_end", "# b", "content", text, "append_if_not_found", true)
		},
		"keyvalue": func(text string) *value.Map { return value.NewMap("key", "user", "value", text) },
		"serialize": func(text string) *value.Map {
			return value.NewMap("dataset", value.NewMap("a", text), "serializer", "json")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if shown := changesWith(t, inputs, name, args("hunter2-new"), "user=app\n"); strings.Contains(shown, "hunter2") ||
				!strings.Contains(shown, "<secret>") {
				t.Errorf("of a new secret, the changes are %s", shown)
			}
			if shown := changesWith(t, inputs, name, args("plain"), "user=app\n"); !strings.Contains(shown, "plain") {
				t.Errorf("without a secret, the changes are %s", shown)
			}
		})
	}
	if shown := changesWith(t, inputs, "managed", value.NewMap("contents", "user=app\n"),
		"password=hunter2-old\n"); strings.Contains(shown, "hunter2") || !strings.Contains(shown, "<secret>") {
		t.Errorf("of an old secret, the changes are %s", shown)
	}
}

// changesWith is changesOf for a file with this text that every user may read.
func changesWith(t *testing.T, inputs Inputs, function string, args *value.Map, text string) string {
	t.Helper()
	return changes(t, inputs, function, args, text, 0o644, 0o755)
}

// changesOf applies a state to a file with these modes, and returns the changes of its dry run and of the run.
func changesOf(t *testing.T, function string, args *value.Map, mode, dirMode os.FileMode) string {
	t.Helper()
	return changes(t, Inputs{}, function, args, "user=app\npassword=hunter2-old\n", mode, dirMode)
}

func changes(t *testing.T, inputs Inputs, function string, args *value.Map, text string, mode,
	dirMode os.FileMode) string {
	t.Helper()
	root := t.TempDir()
	for _, err := range []error{
		os.Mkdir(root+"/etc", 0o755), os.WriteFile(root+"/etc/f", []byte(text), 0o644),
		os.Chmod(root+"/etc/f", mode), os.Chmod(root+"/etc", dirMode),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	args = args.Clone()
	args.Set("name", "/etc/f")
	resource := Functions(inputs)[function]()
	_, problems := module.Decode(resource, module.Call{Function: "file." + function, Arguments: args})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	diff, err := resource.Check(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if diff.Changes.Len() == 0 {
		t.Fatal("it would change nothing")
	}
	done, err := resource.Apply(t.Context(), h, diff)
	if err != nil {
		t.Fatal(err)
	}
	return value.Repr(diff.Changes) + value.Repr(done.Changes)
}
