package custom

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// listModules returns the grain modules of a directory, by name.
func listModules(dir string) ([]entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var found []entry
	for _, n := range names {
		if filepath.Ext(n.Name()) == ".py" && !strings.HasPrefix(n.Name(), ".") && n.Name() != "__init__.py" {
			found = append(found, entry{filepath.Join(dir, n.Name()), saltModule})
		}
	}
	return found, nil
}

// allModules is the time limit of all grain modules together, in limits of one program.
const allModules = 6

// runModules runs all grain modules among found together, and sets their answers. If a later directory has a module of
// the same name, only the later one is run, as with Salt. The errors are those of modules that returned grains
// nevertheless.
func (o Options) runModules(ctx context.Context, found []entry, answers []answer) (warnings []error) {
	if o.Modules == nil || o.Skip != "" {
		return nil
	}
	last := map[string]int{}
	for i, e := range found {
		if e.kind == saltModule {
			last[filepath.Base(e.path)] = i
		}
	}
	var files []string
	for i, e := range found {
		if e.kind != saltModule || last[filepath.Base(e.path)] != i {
			continue
		}
		if o.Check != nil {
			if answers[i].err = o.Check(e.path); answers[i].err != nil {
				continue
			}
		}
		files = append(files, e.path)
	}
	if len(files) == 0 {
		return nil
	}
	// The worker limits the time of each function, so one that hangs leaves time for those of other files.
	ctx, stop := context.WithTimeout(ctx, allModules*cmp.Or(o.Timeout, defaultTimeout))
	defer stop()
	all, err := o.Modules(ctx, files)
	if err != nil {
		warnings = append(warnings, err)
	}
	for i, e := range found {
		if a, ok := all[e.path]; ok {
			answers[i].grains = a.Grains
			warnings = append(warnings, a.Problems...)
		}
	}
	return warnings
}
