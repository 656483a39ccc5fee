package packaging

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// roots returns the directories of a release that have top files.
func roots() []string {
	return []string{"salt/config/states", "salt/config/pillar", "states", "pillar"}
}

// UnusedSLS returns the SLS files of a tree that its own top files do not reach, by name or by the includes of the
// files that they name. It reads text and evaluates no template: an SLS that is mentioned counts as reached, and if a
// template computes a name, so does every SLS that the name could be. For a directory without a top file it returns
// nothing, since another project's top file assigns its SLS files.
func UnusedSLS(tree fs.FS) ([]string, error) {
	var all []string
	for _, root := range roots() {
		names, err := unreachedIn(tree, root)
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	return all, nil
}

func unreachedIn(tree fs.FS, root string) ([]string, error) {
	top, err := fs.ReadFile(tree, root+"/top.sls")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &reach{tree: tree, root: root, files: map[string]string{}, reached: map[string]bool{}}
	if err := r.list(); err != nil || computed(string(top)) {
		return nil, err
	}
	if err := r.follow(topMentions(string(top)), ""); err != nil {
		return nil, err
	}
	var left []string
	for sls, file := range r.files {
		if !r.reached[sls] {
			left = append(left, file)
		}
	}
	slices.Sort(left)
	return left, nil
}

// reach follows SLS names from a top file.
type reach struct {
	tree    fs.FS
	root    string
	files   map[string]string // by SLS name
	reached map[string]bool
}

func (r *reach) list() error {
	return fs.WalkDir(r.tree, r.root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".sls" || file == r.root+"/top.sls" {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, r.root+"/"), ".sls")
		r.files[strings.ReplaceAll(strings.TrimSuffix(name, "/init"), "/", ".")] = file
		return nil
	})
}

// follow marks the files that a file mentions, and those that these mention. in is the package of the file, to
// which names with a leading dot are relative.
func (r *reach) follow(mentioned []string, in string) error {
	for _, word := range mentioned {
		for sls, file := range r.files {
			if r.reached[sls] || !names(word, sls, in) {
				continue
			}
			r.reached[sls] = true
			data, err := fs.ReadFile(r.tree, file)
			if err != nil {
				return err
			}
			inside := sls
			if path.Base(file) != "init.sls" {
				inside = parent(sls)
			}
			if err := r.follow(mentions(string(data)), inside); err != nil {
				return err
			}
		}
	}
	return nil
}

// names reports whether a word of a file may be an SLS: its name, a path, a pattern, or relative to the file's package.
func names(word, sls, in string) bool {
	word = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(word, "/"), ".sls"), "/", ".")
	for strings.HasPrefix(word, ".") {
		rest := word[1:]
		if !strings.HasPrefix(rest, ".") {
			word = strings.TrimPrefix(in+"."+rest, ".")
			break
		}
		word, in = rest, parent(in)
	}
	word = strings.TrimSuffix(word, ".init")
	matched, err := path.Match(word, sls)
	return word == sls || err == nil && matched
}

func parent(sls string) string {
	if i := strings.LastIndex(sls, "."); i >= 0 {
		return sls[:i]
	}
	return ""
}

var (
	comment    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)(?s:\{#.*?#\})|^[ \t]*#.*$`) })
	expression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\{\{.*?\}\}`) })
	key        = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`'[^'\n]*'\s*:|"[^"\n]*"\s*:|[^\s,{}\[\]'"]+\s*:(\s|$)`)
	})
	word       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z0-9_.*?/-]+`) })
	anyInclude = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^include:\s*\n(\s*-.*\n)*?\s*-\s*\{\{[^}\n]*\}\}\s*$`)
	})
)

// computed reports whether a file is in a language other than YAML with templates.
func computed(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(first, "#!") && !strings.Contains(first, "yaml")
}

// topMentions returns the words of a top file except keys, which are patterns of hosts.
func topMentions(text string) []string {
	text = expression().ReplaceAllString(comment().ReplaceAllString(text, ""), "*")
	return word().FindAllString(key().ReplaceAllString(text, " "), -1)
}

// mentions returns the words of an SLS file. A pattern alone names an SLS only if a template computes an include.
func mentions(text string) []string {
	if computed(text) || anyInclude().MatchString(text) {
		return []string{"*"}
	}
	text = expression().ReplaceAllString(comment().ReplaceAllString(text, ""), "*")
	return slices.DeleteFunc(word().FindAllString(text, -1), func(w string) bool { return strings.Trim(w, "*?./") == "" })
}
