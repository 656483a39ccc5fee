package file

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// tree is the wanted part of a source directory, by path on the host.
type tree struct {
	dirs  []string
	files map[string]string // URL by path
	links map[string]string // target by path
	found map[string]string // place of a link in the state tree, by path
	keep  []string          // all paths
}

// choose returns the entries that the patterns and maxdepth select.
func (r *recurse) choose(entries []Entry) (*tree, error) {
	include, err := compilePatterns("include_pat", r.IncludePat)
	if err != nil {
		return nil, err
	}
	exclude, err := compilePatterns("exclude_pat", r.ExcludePat)
	if err != nil {
		return nil, err
	}
	t := &tree{files: map[string]string{}, links: map[string]string{}, found: map[string]string{}}
	dirs := map[string]bool{}
	for _, e := range entries {
		wanted, err := r.wants(e, include, exclude)
		if err != nil {
			return nil, err
		}
		if wanted && !t.behind(r.Name, e.Path) {
			r.take(e, t, dirs)
		}
	}
	t.dirs = slices.Sorted(maps.Keys(dirs))
	return t, nil
}

func (r *recurse) wants(e Entry, include, exclude patterns) (bool, error) {
	if r.MaxDepth != nil && strings.Count(e.Path, "/") > *r.MaxDepth {
		return false, nil
	}
	if len(include) > 0 {
		if ok, err := include.match(e.Path); err != nil || !ok {
			return false, err
		}
	}
	out, err := exclude.match(e.Path)
	return !out, err
}

// behind reports whether a path is below a link that is kept as a link.
func (t *tree) behind(root, p string) bool {
	for p = path.Dir(p); p != "."; p = path.Dir(p) {
		if _, ok := t.links[path.Join(root, p)]; ok {
			return true
		}
	}
	return false
}

func (r *recurse) take(e Entry, t *tree, dirs map[string]bool) {
	place := path.Join(r.Name, e.Path)
	switch {
	case e.Target != "" && r.KeepSymlinks:
		t.links[place], t.found[place] = e.Target, e.Place
	case e.Dir && !r.IncludeEmpty:
		return
	case e.Dir:
		dirs[place] = true
	default:
		t.files[place] = below(r.url, e.Path)
		dirs[path.Dir(place)] = true
	}
	t.keep = append(t.keep, place)
}

// below returns the URL of a file in the directory at url. It keeps the query at the end:
// salt://dir/file?saltenv=dev.
func below(url, file string) string {
	dir, query, ok := strings.Cut(url, "?")
	if !ok {
		return dir + "/" + file
	}
	return dir + "/" + file + "?" + query
}

// withoutSlash removes slashes from the end of a URL's path.
func withoutSlash(url string) string {
	dir, query, ok := strings.Cut(url, "?")
	if dir = strings.TrimRight(dir, "/"); ok {
		return dir + "?" + query
	}
	return dir
}

// plan returns a part for every link, directory and file, in Salt's order except that a directory precedes its
// content.
func (r *recurse) plan(h *host.Host, t *tree) []part {
	var list []part
	if !isDir(h, r.Name) && !slices.Contains(t.dirs, r.Name) {
		list = append(list, part{path: r.Name, resource: r.dir(r.Name), aside: true})
	}
	for _, p := range t.dirs {
		list = append(list, part{path: p, resource: r.dir(p), clear: r.Clean && obstructs(h, p, true)})
	}
	for _, p := range sortedKeys(t.links) {
		list = append(list, part{path: p, resource: r.symlink(p, t.links[p])})
	}
	for _, p := range sortedKeys(t.files) {
		list = append(list, part{path: p, resource: r.file(p, t.files[p]),
			clear: r.Clean && r.Replace && obstructs(h, p, false)})
	}
	return list
}

// without returns a host on which nothing exists at a path.
func without(h *host.Host, p string) *host.Host {
	return h.WithFiles(hidden{h.Files, p})
}

// hidden hides one path of the files.
type hidden struct {
	host.Files
	path string
}

func (f hidden) Stat(p string) (host.Info, error) {
	if p == f.path {
		return host.Info{}, fs.ErrNotExist
	}
	return f.Files.Stat(p)
}

func (f hidden) Lstat(p string) (host.Info, error) {
	if p == f.path {
		return host.Info{}, fs.ErrNotExist
	}
	return f.Files.Lstat(p)
}

// obstructs reports whether the path is a directory but should be a file, or the other way round.
func obstructs(h *host.Host, p string, dir bool) bool {
	info, there, err := look(h.Files.Stat, p)
	return err == nil && there && info.IsDir() != dir
}

func (r *recurse) dir(p string) module.Resource {
	return &directory{Name: p, ownership: r.ownership, DirMode: r.DirMode, MakeDirs: true,
		AllowSymlink: true, family: r.family}
}

func (r *recurse) symlink(p, target string) module.Resource {
	return &symlink{Name: p, Target: target, ownership: r.ownership, Mode: r.SymMode,
		Force: r.ForceSymlinks, MakeDirs: true}
}

func (r *recurse) file(p, url string) module.Resource {
	m := newManaged(r.family)
	m.Name, m.Source, m.ownership, m.environment, m.templated = p, url, r.ownership, r.environment, r.templated
	m.Mode, m.MakeDirs, m.Replace, m.Backup, m.ShowChanges = r.FileMode, true, r.Replace, r.Backup, r.ShowChanges
	m.Arguments = r.Arguments
	return m
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
