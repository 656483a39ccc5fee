package recipe

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// missing reports paths that a recipe names and its source tree does not have. Its error is a diag.List.
func (r Recipe) missing(tree fs.FS) error {
	files := slices.Concat(r.Own(tree), r.Hooks.All(), []string{r.Build.Requirements})
	others := []string{r.Build.Wheels}
	if r.Builder == "" || r.Builder == "tree" { // other builders may make them
		others = append(others, r.Files...)
		files = append(files, r.probeScripts()...)
	}
	var problems diag.List
	r.look(tree, files, others, &problems)
	r.misnamedUnits(tree, &problems)
	return inOrder(problems)
}

// MissingProbes reports scripts of probes that a release does not have. Its error is a diag.List.
func (r Recipe) MissingProbes(release fs.FS) error {
	var problems diag.List
	r.look(release, r.probeScripts(), nil, &problems)
	return inOrder(problems)
}

func inOrder(problems diag.List) error {
	structsort.Func(problems, func(a, b *diag.Diagnostic) int { return a.Pos.Line - b.Pos.Line })
	return problems.Err()
}

// look checks that files exist, and other paths, which may be directories too.
func (r Recipe) look(tree fs.FS, files, others []string, problems *diag.List) {
	names := slices.Concat(files, others)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name == "" || !fs.ValidPath(path.Clean(name)) { // which the parser reports
			continue
		}
		info, err := fs.Stat(tree, path.Clean(name))
		found, err := walk.Found(err)
		switch {
		case err != nil:
			problems.Add(r.At(name), "checking %s: %v", name, err)
		case !found:
			problems.Add(r.At(name), "%s is not in the tree", name).WithHint(diag.Recipe, "add the file, or correct the name")
		case slices.Contains(files, name) && !info.Mode().IsRegular():
			problems.Add(r.At(name), "%s is not a file", name).WithHint(diag.Recipe, "name a file of the tree")
		case slices.Contains(r.probeScripts(), name) && info.Mode()&0o111 == 0:
			problems.Add(r.At(name), "the probe %s is not executable", name).
				WithHint(diag.Recipe, "run `chmod +x "+name+"` in the tree")
		}
	}
}

// probeScripts returns the probes that are files of the release.
func (r Recipe) probeScripts() (scripts []string) {
	for _, p := range r.Health.Probes {
		if p.Kind == ProbeScript && !path.IsAbs(p.Target) {
			scripts = append(scripts, path.Clean(p.Target))
		}
	}
	return scripts
}

// misnamedUnits reports units that are not in the tree and are probably meant to be: their names are similar to those
// of files of the tree.
func (r Recipe) misnamedUnits(tree fs.FS, problems *diag.List) {
	files, err := fs.Glob(tree, "*.*")
	if err != nil {
		problems.Add(diag.Pos{File: Name}, "looking for units in the tree: %v", err)
		return
	}
	inTree := r.UnitFiles(tree)
	for _, unit := range inTree {
		files = append(files, path.Base(unit))
	}
	named := slices.Concat(r.Units, r.Reload)
	for _, p := range r.Health.Probes {
		if p.Kind == ProbeUnit {
			named = append(named, p.Target)
		}
	}
	slices.Sort(named)
	for _, unit := range slices.Compact(named) {
		if slices.Contains(inTree, unit) || slices.Contains(files, unit) {
			continue
		}
		if meant := misspeltUnit(unit, files); meant != "" {
			problems.Add(r.At(unit), "the unit %s is not in the tree",
				unit).WithHint(diag.Recipe, fmt.Sprintf("did you mean %q?", meant))
		}
	}
}

// misspeltUnit returns the file whose name a unit of the same kind probably misspells, or "". All have the same ending.
func misspeltUnit(unit string, files []string) string {
	kind := path.Ext(unit)
	var stems []string
	for _, file := range files {
		if stem, same := strings.CutSuffix(file, kind); same {
			stems = append(stems, stem)
		}
	}
	if meant := diag.Misspelling(strings.TrimSuffix(unit, kind), stems); meant != "" {
		return meant + kind
	}
	return ""
}
