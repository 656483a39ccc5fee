// Package procedure implements the parts of a deploy that a project may replace or extend: archive, release-sync,
// fixperms, install, rollback and notify.
//
// A project keeps its procedures in .salt: NAME.sls, which the native engine runs with the project's configuration as
// the variable cfg, or an executable NAME, which runs as hooks do. install runs every other .sls file at the top of
// .salt, in byte order. If a project has no procedure of a name, the built-in one runs.
package procedure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Dir is the directory of a project's procedures, below the top of its tree.
const Dir = ".salt"

// The steps of a deploy that a user can select by name, in the order in which they run.
const (
	Archive     = "archive"
	Sync        = "sync"
	ReleaseSync = "release-sync"
	Fixperms    = "fixperms"
	Converge    = "converge"
	Install     = "install"
	Hooks       = "hooks"
	Health      = "health"
	Rollback    = "rollback"
	Notify      = "notify"
)

// Steps returns the steps, in order.
func Steps() []string {
	return []string{Archive, Sync, ReleaseSync, Fixperms, Converge, Install, Hooks, Health, Rollback, Notify}
}

// Only is the selection of steps of a run. The zero Only selects all of them.
type Only struct{ steps []string }

// ParseOnly parses a comma-separated list of steps.
func ParseOnly(text string) (Only, error) {
	var o Only
	for step := range strings.SplitSeq(text, ",") {
		step = strings.TrimSpace(step)
		if step == "" {
			continue
		}
		if !slices.Contains(Steps(), step) {
			hint := diag.DidYouMean(step, Steps())
			if hint == "" {
				hint = "the steps are " + strings.Join(Steps(), ", ")
			}
			return Only{}, diag.Usage.Hint(fmt.Errorf("there is no step %q", step), "%s", hint)
		}
		o.steps = append(o.steps, step)
	}
	return o, nil
}

// All reports whether all steps are selected.
func (o Only) All() bool { return len(o.steps) == 0 }

// Has reports whether a step is selected.
func (o Only) Has(step string) bool { return o.All() || slices.Contains(o.steps, step) }

func (o Only) String() string { return strings.Join(o.steps, ",") }

// Own is a project's own procedure. At most one of the fields is set.
type Own struct {
	SLS        string // name of the SLS file in the project's .salt
	Executable string // path
}

// Found reports whether the project has the procedure.
func (o Own) Found() bool { return o != Own{} }

// Find returns a project's own procedure in its tree. An executable has priority.
func Find(tree, name string) (Own, error) {
	path := filepath.Join(tree, Dir, name)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0:
		return Own{Executable: path}, nil
	case err == nil && info.Mode().IsRegular():
		return Own{}, diag.Hook.Hint(fmt.Errorf("the procedure %s is not executable", path),
			"chmod +x it in the source tree, or call it %s.sls", name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Own{}, err
	}
	info, err = os.Stat(path + ".sls")
	if found, err := walk.Found(err); err != nil || !found || !info.Mode().IsRegular() {
		return Own{}, err
	}
	return Own{SLS: name}, nil
}

// Has reports whether a tree has a directory of procedures.
func Has(tree string) (bool, error) { return walk.Directory(filepath.Join(tree, Dir)) }

// reserved reports whether an SLS file is another procedure, or a part that other files include.
func reserved(name string) bool {
	return slices.Contains([]string{Archive, ReleaseSync, Rollback, Fixperms, Notify}, name) ||
		strings.HasPrefix(name, "task_")
}

// InstallSLS returns the SLS files that install runs: those at the top of .salt, in byte order, without top files and
// hidden files.
func InstallSLS(tree string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(tree, Dir))
	if err != nil {
		return nil, fmt.Errorf("reading the procedures: %w", err)
	}
	var names []string
	var problems diag.List
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".sls")
		if !ok || e.IsDir() || reserved(name) || name == "top" || strings.HasPrefix(name, ".") {
			continue
		}
		if strings.Contains(name, ".") {
			problems.Add(diag.Pos{File: filepath.Join(Dir, e.Name())}, "an SLS file with a dot in its name cannot be named").
				WithHint(diag.Hook, "a dot is a directory in names of SLS files: call it "+strings.ReplaceAll(name, ".",
					"_")+".sls")
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, problems.Err()
}
