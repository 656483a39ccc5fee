package packaging

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Missing returns the SLS files that the top files of a tree name and that are missing in the tree, each as "top file:
// name". Names that a template computes are left out, since they are not known.
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
	statement = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)\{%.*?%\}|\{#.*?#\}|(?m:[ \t]#.*$)`)
	})
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
