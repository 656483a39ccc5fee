package packaging

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
)

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
