package external

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mostDepth is the maximum depth of a file in a tree, since links may form a loop.
const mostDepth = 64

// treeReader reads a directory as a mapping: files by their names, and directories as mappings.
type treeReader struct {
	files       Files
	followLinks bool // follow links to directories
	keepNewline any  // true, or patterns of the paths of files that keep the newline at their end
}

// fileTree returns the data below the directories of the host's nodegroups, with the data below the host's own
// directory merged over them.
func (w World) fileTree(argument any) (any, error) {
	p, err := parameters(argument, "root_dir", "follow_dir_links", "debug", "keep_newline", "render_default",
		"renderer_blacklist", "renderer_whitelist", "template")
	if err != nil {
		return nil, err
	}
	if value.Truth(p.Value("template")) {
		return nil, diag.External.Hint(errors.New("its argument template is not supported"),
			"files that are templates belong to the pillar tree, or to the source `stack`")
	}
	dir := value.Str(p.Value("root_dir"))
	if p.Value("root_dir") == nil || dir == "" {
		return nil, diag.External.Hint(errors.New("it has no root_dir"), "write `- file_tree: {root_dir: DIRECTORY}`")
	}
	dirs := []string{dir}
	if !path.IsAbs(dir) {
		dirs = nil
		for _, root := range w.Dirs {
			dirs = append(dirs, path.Join(root, dir))
		}
	}
	t := treeReader{files: w.Files, followLinks: value.Truth(p.Value("follow_dir_links")),
		keepNewline: p.Value("keep_newline")}
	all, missing := value.NewMap(), true
	for _, dir := range dirs {
		there, err := isDir(t.files, dir)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		missing = false
		more, err := w.treeBelow(t, dir)
		if err != nil {
			return nil, err
		}
		if all, err = value.Merge(all, more, value.Recurse, false); err != nil {
			return nil, err
		}
	}
	if missing {
		return nil, diag.External.Hint(fmt.Errorf("there is no directory %s", dir),
			"create it, or correct root_dir; a relative one is below the pillar roots")
	}
	return all, nil
}

// treeBelow returns the data of this host below one root directory.
func (w World) treeBelow(t treeReader, root string) (*value.Map, error) {
	all := value.NewMap()
	groups, _ := w.Options.Value("nodegroups").(*value.Map)
	var dirs []string
	for _, group := range groups.Names() {
		member, err := w.Member(group)
		if err != nil {
			return nil, fmt.Errorf("nodegroup %s: %w", group, err)
		}
		if member {
			dirs = append(dirs, path.Join(root, "nodegroups", group))
		}
	}
	for _, dir := range append(dirs, path.Join(root, "hosts", w.ID)) {
		if there, err := isDir(t.files, dir); err != nil || !there {
			if err != nil {
				return nil, err
			}
			continue
		}
		more, err := t.read(dir, "", 0)
		if err != nil {
			return nil, err
		}
		if all, err = value.Merge(all, more, value.Recurse, false); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func isDir(files Files, dir string) (bool, error) {
	info, err := files.Stat(dir)
	found, err := walk.Found(err)
	return found && info.IsDir(), err
}

// read returns the content of a directory as a mapping. prefix is its path below the root directory.
func (t treeReader) read(dir, prefix string, depth int) (*value.Map, error) {
	if depth > mostDepth {
		return nil, fmt.Errorf("%s is below more than %d directories", dir, mostDepth)
	}
	names, err := t.files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for _, name := range names {
		v, found, err := t.entry(path.Join(dir, name), path.Join(prefix, name), depth)
		if err != nil {
			return nil, err
		}
		if found {
			all.Set(name, v)
		}
	}
	return all, nil
}

// entry returns the value of one name in a directory.
func (t treeReader) entry(file, rel string, depth int) (v any, found bool, err error) {
	info, err := t.files.Stat(file)
	if found, err = walk.Found(err); err != nil || !found {
		return nil, false, err
	}
	switch {
	case info.IsDir():
		link, err := t.files.Lstat(file)
		if err == nil && link.IsLink() && !t.followLinks {
			return value.NewMap(), true, nil
		}
		v, err = t.read(file, rel, depth+1)
		return v, true, err
	case !info.IsRegular():
		return nil, false, nil
	}
	data, err := t.files.ReadFile(file)
	if err != nil {
		return nil, false, err
	}
	if n := len(data); n > 0 && data[n-1] == '\n' && !t.keeps(rel) {
		data = data[:n-1]
	}
	return string(data), true, nil
}

// keeps reports whether a file keeps the newline at its end.
func (t treeReader) keeps(rel string) bool {
	patterns, ok := t.keepNewline.(*value.List)
	if !ok {
		return value.Truth(t.keepNewline)
	}
	return slices.ContainsFunc(patterns.Items, func(pattern any) bool { return value.Glob(value.Str(pattern), rel) })
}
