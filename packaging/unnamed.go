package packaging

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// Missing returns the SLS files that the top files of a tree name and the tree lacks, each as "top file: name".
// Names that a template computes are left out, since they are not known.
func Missing(tree fs.FS) ([]string, error) {
	var all []string
	for _, root := range roots() {
		top, err := fs.ReadFile(tree, root+"/top.sls")
		if errors.Is(err, fs.ErrNotExist) || err == nil && computed(string(top)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r := &reach{tree: tree, root: root, files: map[string]string{}}
		if err := r.list(); err != nil {
			return nil, err
		}
		for _, name := range r.missing(string(top)) {
			all = append(all, root+"/top.sls: "+name)
		}
	}
	return all, nil
}

// matchers are the settings of a target in a top file, which are not names of SLS files.
var (
	matchers = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)\b(match|ignore_missing|order)\s*:\s*[A-Za-z0-9_]+`)
	})
	statement = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\{%.*?%\}|(?m:[ \t]#.*$)`) })
)

func (r *reach) missing(top string) []string {
	var missing []string
	for _, word := range topMentions(matchers().ReplaceAllString(statement().ReplaceAllString(top, ""), "")) {
		there := strings.ContainsAny(word, "*?") || strings.Trim(word, "./-") == ""
		for sls := range r.files {
			there = there || names(word, sls, "")
		}
		if !there && !slices.Contains(missing, word) {
			missing = append(missing, word)
		}
	}
	return missing
}

// maxSearched is the size up to which files are searched for names.
const maxSearched = 1 << 20

// search visits the wanted files of a tree.
func search(tree fs.FS, wanted func(file string) bool, visit func(file string, data []byte)) error {
	return fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxSearched || !wanted(file) {
			return err
		}
		data, err := fs.ReadFile(tree, file)
		if err == nil {
			visit(file, data)
		}
		return err
	})
}

// declares reports whether a file is an SLS file, a unit or a drop-in, or a template of one.
func declares(file string) bool {
	for _, ending := range []string{".j2", ".jinja", ".jinja2", ".tmpl"} {
		file = strings.TrimSuffix(file, ending)
	}
	switch path.Ext(file) {
	case ".sls", ".service", ".socket", ".timer", ".path", ".mount", ".conf":
		return true
	}
	return false
}

// throughNext finds next in a setting of a unit and in the target of a link.
var throughNext = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^[ \t-]*(?:[A-Z][A-Za-z]+=.*?|target:[ \t]*['"]?)/srv/(?:service|base|projects/[^/\s]+)/next(?:[/\s'";:]|$)`)
})

// ThroughNext returns the places where units of a tree, and links that its states make, use a path through next, as
// "file:line".
func ThroughNext(tree fs.FS) ([]string, error) {
	var places []string
	err := search(tree, declares, func(file string, data []byte) {
		for i, line := range bytes.Split(data, []byte("\n")) {
			if throughNext().Match(line) {
				places = append(places, fmt.Sprintf("%s:%d", file, i+1))
			}
		}
	})
	return places, err
}

// Foreign returns the units among names that are not files of the tree and are not mentioned in its other files.
func Foreign(tree fs.FS, units []string) ([]string, error) {
	known := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			known[path.Base(file)] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = search(tree, func(file string) bool { return file != recipe.Name }, func(_ string, data []byte) {
		for _, unit := range units {
			stem, _, _ := strings.Cut(strings.TrimSuffix(unit, path.Ext(unit)), "@")
			known[path.Base(unit)] = known[path.Base(unit)] || bytes.Contains(data, []byte(path.Base(stem)))
		}
	})
	return slices.DeleteFunc(slices.Clone(units), func(unit string) bool { return known[path.Base(unit)] }), err
}
