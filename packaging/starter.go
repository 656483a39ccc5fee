package packaging

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

//go:embed all:trees/starter all:trees/base
var starters embed.FS

// starterDir has a directory for each kind of starter tree except the base tree, which is more than a start.
const (
	starterDir = "trees/starter"
	baseDir    = "trees/base"
)

// starterName is the name of the project in the starter trees.
const starterName = "myapp"

// StarterKinds lists the kinds of starter trees.
func StarterKinds() (kinds []string) {
	entries, err := starters.ReadDir(starterDir)
	if err != nil {
		panic(err) // the trees are part of the program
	}
	kinds = append(kinds, path.Base(baseDir))
	for _, e := range entries {
		kinds = append(kinds, e.Name())
	}
	return kinds
}

// Starter returns the files of a new tree of a kind for a project, by their paths. A file whose content begins with #!
// should be executable.
func Starter(kind, name string) (map[string][]byte, error) {
	if !slices.Contains(StarterKinds(), kind) {
		return nil, diag.Usage.Hint(fmt.Errorf("there is no starter tree of the kind %s", kind), "kinds are %s",
			strings.Join(StarterKinds(), ", "))
	}
	if kind != path.Base(baseDir) && kind != cloudKind && slices.Contains(ownNames(), name) {
		return nil, taken(name, "this system has a project, or a unit, of that name")
	}
	files, root := map[string][]byte{}, path.Join(starterDir, kind)
	if kind == path.Base(baseDir) {
		root = baseDir
	}
	err := fs.WalkDir(starters, root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := starters.ReadFile(file)
		if err != nil {
			return err
		}
		// Go files end in .txt here, since they belong to the new tree and not to this program.
		local := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".txt")
		local = strings.ReplaceAll(local, starterName, name)
		if files[local] != nil {
			return taken(name, fmt.Sprintf("the tree of this kind has a file %s of its own", local))
		}
		files[local] = []byte(renamed(string(text), name))
		if id := repeatedID(local, files[local]); id != "" {
			return taken(name, fmt.Sprintf("%s has %s already", local, id))
		}
		return nil
	})
	return files, err
}

// cloudKind is the kind of starter tree that has no name of its own, as the base tree.
const cloudKind = "cloud"

// ownNames returns the names that a service cannot have: its unit or its project would take the place of another.
func ownNames() []string { return []string{artifact.Base, "corpus-agent", "corpus-refresh"} }

// taken returns the error for a name that would make a tree overwrite one of its own files.
func taken(name, why string) error {
	return diag.Usage.Hint(fmt.Errorf("the tree cannot be named %s: %s", name, why), "give it another name with --name")
}

// repeatedID returns an ID that an SLS file declares twice; "" for none. It leaves out IDs of templates, which may be
// in two branches.
func repeatedID(file string, text []byte) string {
	if path.Ext(file) != ".sls" {
		return ""
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		id, isID := strings.CutSuffix(strings.TrimRight(line, "\n"), ":")
		if !isID || strings.HasPrefix(id, " ") || strings.HasPrefix(id, "#") || strings.Contains(id, "{{") {
			continue
		}
		if seen[id] {
			return id
		}
		seen[id] = true
	}
	return ""
}

// renamed replaces the name of the starter trees by another name. Names of environment variables are in upper case and
// have no dashes.
func renamed(text, name string) string {
	variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return strings.NewReplacer(starterName, name, strings.ToUpper(starterName), variable, "Myapp answers",
		"This program answers").Replace(text)
}

// StarterMode returns the permissions of a file of a starter tree with some content.
func StarterMode(content []byte) os.FileMode {
	if strings.HasPrefix(string(content), "#!") {
		return 0o755
	}
	return 0o644
}
