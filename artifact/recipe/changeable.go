package recipe

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Changeable lists the templates that SLS files of a tree name and that the project's user may change on a host: those
// below one of the writable paths or in data/. The agent does not render them. Each is returned as FILE:LINE and the
// source. SLS files that are themselves below one of the writable paths are returned as FILE. It reads text and
// evaluates no templates, so it does not find a path that is computed as a whole.
func Changeable(tree fs.FS, writable []string) ([]string, error) {
	var all []string
	for _, root := range []string{"salt", "states"} {
		err := fs.WalkDir(tree, root, func(file string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && file == root {
				return fs.SkipDir
			}
			if err != nil || !d.Type().IsRegular() || path.Ext(file) != ".sls" {
				return err
			}
			if belowAny("/"+file, writable) {
				all = append(all, file)
			}
			data, err := fs.ReadFile(tree, file)
			all = append(all, changeableIn(file, string(data), append([]string{"data"}, writable...))...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func changeableIn(file, text string, writable []string) (all []string) {
	var found []string
	rendered := false
	end := func() {
		if rendered {
			all = append(all, found...)
		}
		found, rendered = nil, false
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if !strings.ContainsAny(line[:1], " \t-}{") { // the next ID
			end()
		}
		rendered = rendered || templateLine().MatchString(line)
		for _, m := range sourceWord().FindAllStringSubmatch(line, -1) {
			if belowAny(m[1], writable) {
				found = append(found, fmt.Sprintf("%s:%d %s", file, number, m[1]))
			}
		}
	}
	end()
	return all
}

// templateLine matches a line that names a template engine, and sourceWord a path of the host or a tree, with or
// without an expression in it.
var (
	templateLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\btemplate['"]?\s*:\s*['"]?jinja`) })
	sourceWord   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`\bsources?['"]?\s*:.*?((?:salt://|file://|/|\{\{[^}]*\}\})(?:\{\{[^}]*\}\}|[^\s'",\]}])+)`)
	})
)

func belowAny(source string, writable []string) bool {
	if rest, salt := strings.CutPrefix(source, "salt://"); salt {
		source = "/" + rest
	}
	return slices.ContainsFunc(writable, func(dir string) bool {
		return strings.Contains(source+"/", "/"+path.Clean(dir)+"/")
	})
}
