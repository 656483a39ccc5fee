package packaging

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// Foreign returns the units among names that are not files of the tree and are not mentioned in its other files.
func Foreign(tree fs.FS, units []string) ([]string, error) {
	known := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			known[path.Base(file)] = true
		}
		return err
	})
	unknown := slices.DeleteFunc(slices.Clone(units), func(unit string) bool { return known[path.Base(unit)] })
	if err != nil || len(unknown) == 0 {
		return nil, err // mostly: no other file needs to be read
	}
	err = search(tree, func(file string) bool { return file != recipe.Name }, func(_ string, data []byte) {
		for _, unit := range unknown {
			stem, _, _ := strings.Cut(strings.TrimSuffix(unit, path.Ext(unit)), "@")
			known[path.Base(unit)] = known[path.Base(unit)] || bytes.Contains(data, []byte(path.Base(stem)))
		}
	})
	return slices.DeleteFunc(unknown, func(unit string) bool { return known[path.Base(unit)] }), err
}
