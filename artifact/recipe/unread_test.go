package recipe_test

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestUnreadFilesAreMistakes uses trees with mistakes: a build refuses them, and proposes the name that was probably
// meant.
func TestUnreadFilesAreMistakes(t *testing.T) {
	const program, plain = fs.FileMode(0o755), fs.FileMode(0o644)
	for name, c := range map[string]struct {
		file, text string
		mode       fs.FileMode
		want, hint string // "" for nothing to report
	}{
		"as the key":         {"hooks/pre_release.d/10-x", "", program, "pre_release.d: no stage", "pre-release.d"},
		"no hyphen":          {"hooks/prerelease.d/10-x", "", program, "prerelease.d: no stage", "pre-release.d"},
		"no ending":          {"hooks/post-release/10-x", "", program, "post-release: no stage", "post-release.d"},
		"capitals":           {"hooks/Pre-Release.d/10-x", "", program, "Pre-Release.d: no stage", "pre-release.d"},
		"another stage":      {"hooks/rollback.d/10-x", "", program, "hooks/rollback.d: no stage", "the stages are"},
		"a file":             {"hooks/pre-release.d", "", program, "hooks/pre-release.d: it is not a directory", "into it"},
		"of no stage":        {"hooks/check.sh", "", program, "hooks/check.sh: it is in no stage", "below `hooks`"},
		"no execute bit":     {"hooks/pre-release.d/10-x", "", plain, "10-x: it is not executable", "chmod +x"},
		"hook, not hooks":    {"hook/pre-release.d/10-x", "", program, "hook/pre-release.d: hooks are run", "hooks/pre-"},
		"another ending":     {"corpus.yml", "name: x\n", plain, "corpus.yml: no release is configured", "corpus.yaml"},
		"misspelt":           {".salt/instal", "", program, ".salt/instal: no procedure", "install"},
		"an underscore":      {".salt/release_sync", "", program, "release_sync: no procedure", "release-sync"},
		"not executable":     {".salt/notify", "", plain, ".salt/notify: it is not executable", "notify.sls"},
		"states misspelt":    {"salt/config/state/top.sls", "", plain, "salt/config/state: no host reads", "config/states"},
		"a grain not to run": {"grains/role", "#!/bin/sh\n", plain, "grains/role: it looks like a program", "chmod +x"},

		"a hook":           {"hooks/pre-release.d/10-x", "", program, "", ""},
		"a library":        {"hooks/lib/common.sh", "", plain, "", ""},
		"a text":           {"hooks/README", "", plain, "", ""},
		"a text beside":    {"hooks/pre-release.d/README.md", "", plain, "", ""},
		"a named program":  {"hooks/called", "", program, "", ""},
		"a listed program": {"hooks/listed", "", program, "", ""},
		"a procedure":      {".salt/rollback", "", program, "", ""},
		"its states":       {".salt/installs.sls", "", plain, "", ""},
		"a helper":         {".salt/collect", "", program, "", ""},
		"states":           {"salt/config/states/top.sls", "", plain, "", ""},
		"a grain file":     {"grains/role.yaml", "a: b\n", plain, "", ""},
		"no grain":         {"grains/README", "grains\n", plain, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{
				"hooks/post-release.d/20-call": {Data: []byte("#!/bin/sh\nexec hooks/called\n"), Mode: 0o755},
				c.file:                         {Data: []byte(c.text), Mode: c.mode},
			}
			if c.file != "corpus.yml" {
				tree[recipe.Name] = &fstest.MapFile{Data: []byte("hooks: {pre_archive: [hooks/listed]}\n")}
				tree["hooks/listed"] = &fstest.MapFile{Mode: 0o755}
			}
			_, err := recipe.LoadStrict(tree)
			var list diag.List
			got, hint := "", ""
			if errors.As(err, &list) {
				got, hint = err.Error(), list[0].Hint
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || !strings.Contains(hint, c.hint) {
				t.Errorf("it reports %v, hint %q, want %q, %q", err, hint, c.want, c.hint)
			}
			if _, err := recipe.Load(tree); err != nil {
				t.Errorf("a host refuses the release: %v", err)
			}
		})
	}
}

// TestStagesAreThoseOfTheKeys keeps the list of stages complete.
func TestStagesAreThoseOfTheKeys(t *testing.T) {
	if stages := slices.Sorted(maps.Keys(recipe.Hooks{}.Stages())); !slices.Equal(stages, recipe.Stages()) {
		t.Errorf("the stages are %q, want %q", recipe.Stages(), stages)
	}
}

// TestHooksOfGuestsAreThoseOfClouds checks that only a release of a cloud, whose states run them, has these stages.
func TestHooksOfGuestsAreThoseOfClouds(t *testing.T) {
	for _, c := range [][3]string{{"guest-create.d", "yes", ""}, {"guest-created.d", "yes", ""},
		{"guest-created.d", "", "no stage of hooks"}, {"guest_create.d", "yes", "no stage of hooks is called so"}} {
		tree := fstest.MapFS{recipe.Name: {}, "hooks/" + c[0] + "/10-x": {Mode: 0o755}}
		if c[1] != "" {
			tree["salt/config/states/cloud.yaml"] = &fstest.MapFile{Data: []byte("form: 1\n")}
		}
		_, err := recipe.LoadStrict(tree)
		if (err != nil) != (c[2] != "") || err != nil && !strings.Contains(err.Error(), c[2]) {
			t.Errorf("hooks/%s in a cloud (%s): %v, want %q", c[0], c[1], err, c[2])
		}
	}
}
