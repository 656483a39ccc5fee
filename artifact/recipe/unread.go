package recipe

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Stages returns the agent's names of the stages of hooks, sorted.
func Stages() []string { return []string{"post-archive", "post-release", "pre-archive", "pre-release"} }

// stages returns the stages of hooks that a release has: those of the agent, and in a release of the project cloud
// those that its states run for guests.
func (u *unread) stages() []string {
	if u.look("salt/config/states/cloud.yaml") != nil {
		return append([]string{"guest-create", "guest-created"}, Stages()...)
	}
	return Stages()
}

// Procedures returns the names of the procedures that a project may have in .salt, as NAME.sls or an executable NAME.
func Procedures() []string {
	return []string{"archive", "fixperms", "install", "notify", "release-sync", "rollback"}
}

// Unread reports files in the reserved places of a source tree, or of a release, that no agent will read or run because
// of their name, place or mode, though their author expects it to. Its error is a diag.List.
func (r Recipe) Unread(tree fs.FS) error {
	u := unread{recipe: r, tree: tree}
	u.hooks()
	u.elsewhere()
	u.procedures()
	u.states()
	u.grains()
	return u.problems.Err()
}

type unread struct {
	recipe   Recipe
	tree     fs.FS
	problems diag.List
}

// add reports a path.
func (u *unread) add(name, text, hint string, args ...any) {
	u.problems.Add(diag.Pos{File: name}, "%s", text).WithHint(diag.Recipe, fmt.Sprintf(hint, args...))
}

// entries returns the names in a directory that are not hidden; none if the directory does not exist.
func (u *unread) entries(dir string) []fs.DirEntry {
	list, err := fs.ReadDir(u.tree, dir)
	if found, err := walk.Found(err); err != nil {
		u.problems.Add(diag.Pos{File: dir}, "%v", err)
	} else if !found {
		return nil
	}
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "README")
	})
}

// look returns the file at a path, with links followed. It returns nil if there is none, or if that cannot be
// determined, which it reports.
func (u *unread) look(name string) fs.FileInfo {
	info, err := fs.Stat(u.tree, name)
	if found, err := walk.Found(err); err != nil {
		u.problems.Add(diag.Pos{File: name}, "%v", err)
	} else if found {
		return info
	}
	return nil
}

// is reports whether a path is a directory, and whether it is an executable file.
func (u *unread) is(name string) (dir, program bool) {
	info := u.look(name)
	return info != nil && info.IsDir(), info != nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// text returns the content of a file; nil if it is not a regular file.
func (u *unread) text(name string) []byte {
	if info := u.look(name); info == nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := fs.ReadFile(u.tree, name)
	if err != nil {
		u.problems.Add(diag.Pos{File: name}, "%v", err)
	}
	return data
}

// hooks looks for programs below hooks that no stage runs.
func (u *unread) hooks() {
	stages := u.stages()
	for _, e := range u.entries("hooks") {
		name := path.Join("hooks", e.Name())
		dir, program := u.is(name)
		stage, proper := strings.CutSuffix(e.Name(), ".d")
		switch meant := misspeltStage(e.Name(), stages); {
		case slices.Contains(u.recipe.Hooks.All(), name):
		case proper && slices.Contains(stages, stage) && dir:
			u.stage(name)
		case proper && slices.Contains(stages, stage):
			u.add(name, "it is not a directory, so no hook is run", "make it a directory, and put the hooks into it")
		case meant != "":
			u.add(name, "no stage of hooks is called so, and nothing runs it", "did you mean %s.d?", meant)
		case proper && dir:
			u.add(name, "no stage of hooks is called so, and nothing runs it", "the stages are %s, each with .d at its end",
				strings.Join(stages, ", "))
		case program && !u.mentioned(e.Name()):
			u.add(name, "it is in no stage's directory, and nothing runs it",
				"move it to the directory of a stage, such as hooks/pre-release.d, or name it below `hooks` in %s", Name)
		}
	}
}

// misspeltStage returns the stage that a name below hooks probably means; "" if it is a stage's directory, or no
// similar name.
func misspeltStage(name string, stages []string) string {
	plain := strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(name, ".d")), "_", "-")
	switch {
	case slices.Contains(stages, strings.TrimSuffix(name, ".d")) && strings.HasSuffix(name, ".d"):
		return ""
	case slices.Contains(stages, plain):
		return plain
	}
	return diag.Misspelling(plain, stages)
}

// stage reports files in a stage's directory that cannot be started, which makes the stage fail.
func (u *unread) stage(dir string) {
	for _, e := range u.entries(dir) {
		name := path.Join(dir, e.Name())
		if _, program := u.is(name); !program {
			u.add(name, "it is not executable, which fails the stage", "chmod +x it, or move it out of the directory")
		}
	}
}

// mentioned reports whether the text of a hook contains a name, since the hook may call a program of that name.
func (u *unread) mentioned(name string) bool {
	scripts := slices.Clone(u.recipe.Hooks.All())
	for _, stage := range u.stages() {
		dir := path.Join("hooks", stage+".d")
		for _, e := range u.entries(dir) {
			scripts = append(scripts, path.Join(dir, e.Name()))
		}
	}
	return slices.ContainsFunc(scripts, func(script string) bool {
		return bytes.Contains(u.text(path.Clean(script)), []byte(name))
	})
}

// elsewhere reports directories of stages that are not below hooks, and a recipe with another name.
func (u *unread) elsewhere() {
	for _, e := range u.entries(".") {
		for _, stage := range Stages() {
			name := path.Join(e.Name(), stage+".d")
			if e.Name() == "hooks" || !e.IsDir() {
				continue
			}
			if dir, _ := u.is(name); dir {
				u.add(name, "hooks are run below hooks alone", "did you mean hooks/%s.d?", stage)
			}
		}
	}
	if u.look(Name) != nil {
		return
	}
	for _, name := range []string{"corpus.yml", "." + Name, "corpus.json"} {
		if info := u.look(name); info != nil && info.Mode().IsRegular() {
			u.add(name, "no release is configured by a file of this name", "did you mean %s?", Name)
		}
	}
}

// procedures looks for programs in .salt that are not a procedure, and procedures that are not started.
func (u *unread) procedures() {
	for _, e := range u.entries(procedureDir) {
		name := path.Join(procedureDir, e.Name())
		dir, program := u.is(name)
		meant := strings.ReplaceAll(strings.ToLower(e.Name()), "_", "-")
		if !slices.Contains(Procedures(), meant) {
			meant = diag.Misspelling(meant, Procedures())
		}
		switch {
		case slices.Contains(Procedures(), e.Name()) && !program && !dir:
			u.add(name, "it is not executable, which fails the deploy", "chmod +x it, or call it %s.sls", e.Name())
		case meant != e.Name() && meant != "" && program:
			u.add(name, "no procedure is called so, and nothing runs it", "did you mean %s?", meant)
		}
	}
}

// states looks for directories beside those in which a service keeps its states and its pillar.
func (u *unread) states() {
	for _, e := range u.entries("salt/config") {
		name := path.Join("salt/config", e.Name())
		kinds := []string{"pillar", "states"}
		meant := diag.Misspelling(strings.ToLower(e.Name()), kinds)
		if slices.Contains(kinds, strings.ToLower(e.Name())) {
			meant = strings.ToLower(e.Name())
		}
		if dir, _ := u.is(name); dir && meant != "" && meant != e.Name() {
			u.add(name, "no host reads a directory of this name", "did you mean salt/config/%s?", meant)
		}
	}
}

// grains looks for programs in grains that are not started.
func (u *unread) grains() {
	for _, e := range u.entries("grains") {
		name := path.Join("grains", e.Name())
		if dir, program := u.is(name); dir || program || slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			continue
		}
		if bytes.HasPrefix(u.text(name), []byte("#!")) {
			u.add(name, "it looks like a program and is not executable, so its grains are missing", "chmod +x it")
		}
	}
}
