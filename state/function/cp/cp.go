// Package cp implements cp.*: files of the state tree. The tree is on this host, so files are not copied into a
// cache: the functions return the path of the file itself.
package cp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cp reads the state tree.
type cp struct{ *function.Facts }

// Functions returns the functions of cp that templates may call.
func Functions(f *function.Facts) function.Table {
	c := cp{f}
	return function.Table{
		"cp.envs":             function.Of("", c.envs),
		"cp.list_states":      function.Of("saltenv=None", c.listStates),
		"cp.list_master":      function.Of("saltenv=None, prefix=''", c.listFiles),
		"cp.list_master_dirs": function.Of("saltenv=None, prefix=''", c.listFolders),
		"cp.list_master_symlinks": function.Of("saltenv=None, prefix=''", func(_, _ any) *value.Map {
			return value.NewMap()
		}),
		"cp.list_minion":  function.Of("saltenv=None", func(any) *value.List { return value.NewList() }),
		"cp.get_file_str": function.Of("path, saltenv=None", c.TreeText),
		"cp.hash_file":    function.Of("path, saltenv=None", c.hash),
		"cp.stat_file":    function.Of("path, saltenv=None, octal=True", c.mode),
		"cp.is_cached":    function.Of("path, saltenv=None", c.cached),
		"cp.cache_file":   function.Of("path, saltenv=None, source_hash=None, verify_ssl=True, use_etag=False", c.cacheFile),
		"cp.cache_dir": function.Of("path, saltenv=None, include_empty=False, include_pat=None, exclude_pat=None, "+
			"verify_ssl=True, use_etag=False", c.cacheDir),
		"cp.get_url": function.Of("path, dest='', saltenv=None, makedirs=False, source_hash=None", c.url),
	}
}

func (c cp) envs() ([]string, error) {
	tree, err := c.StateTree()
	if err != nil {
		return nil, err
	}
	return tree.Envs(), nil
}

func (c cp) listStates(env string) ([]string, error) {
	tree, err := c.StateTree()
	if err != nil {
		return nil, err
	}
	return tree.States(c.Environment(env))
}

func (c cp) listFiles(env, prefix string) ([]string, error) {
	return c.below(prefix, func(tree *roots.Roots) ([]string, error) { return tree.Files(c.Environment(env)) })
}

func (c cp) listFolders(env, prefix string) ([]string, error) {
	return c.below(prefix, func(tree *roots.Roots) ([]string, error) { return tree.Folders(c.Environment(env)) })
}

func (c cp) below(prefix string, list func(*roots.Roots) ([]string, error)) ([]string, error) {
	tree, err := c.StateTree()
	if err != nil {
		return nil, err
	}
	all, err := list(tree)
	prefix = strings.Trim(prefix, "/")
	below := []string{}
	for _, name := range all {
		if prefix == "" || name == prefix || strings.HasPrefix(name, prefix+"/") {
			below = append(below, name)
		}
	}
	return below, err
}

func (c cp) hash(url, env string) (any, error) {
	file, ok, err := c.locateBare(url, env)
	if err != nil || !ok {
		return "", err
	}
	data, err := function.ReadText(c.HostOf(url), file)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(data))
	text := hex.EncodeToString(sum[:])
	if path.IsAbs(url) {
		return value.NewMap("hsum", text, "hash_type", "sha256"), nil
	}
	return value.NewMap("hash_type", "sha256", "hsum", text), nil
}

// locateBare is like Locate, for functions that accept only files of the tree and absolute paths. For anything else
// ok is false.
func (c cp) locateBare(url, env string) (file string, ok bool, err error) {
	if !strings.HasPrefix(url, "salt://") && !path.IsAbs(url) {
		return "", false, nil
	}
	return c.Locate(url, env)
}

// mode returns the mode of a file: its permissions as four octal digits, or the kernel's number with the file type.
func (c cp) mode(url, env string, octal bool) (any, error) {
	file, ok, err := c.locateBare(url, env)
	if err != nil || !ok {
		return nil, err
	}
	info, err := c.HostOf(url).Files.Stat(file)
	if err != nil {
		return nil, err
	}
	if !octal {
		return int(function.RawMode(info.Mode)), nil
	}
	return function.ModeText(info.Mode), nil
}

func (c cp) cached(url, env string) (any, error) {
	file, _, err := c.locateBare(url, env)
	return file, err
}

// cacheFile returns the path of a file of the tree, or False if it does not exist.
func (c cp) cacheFile(url, env string, _, _, _ any) (any, error) {
	file, ok, err := c.Locate(url, env)
	if !ok && !path.IsAbs(file) {
		return false, err
	}
	return file, err
}

// cacheDir returns the paths of the files below a directory of the tree, as cacheFile does of one.
func (c cp) cacheDir(url, env string, _ any, include, exclude *string, _, _ any) (any, error) {
	if include != nil || exclude != nil {
		return nil, diag.Call.Hint(errors.New("include_pat and exclude_pat of cp.cache_dir are not supported"),
			"select from the paths that it returns")
	}
	dir := url
	if in, ok := strings.CutPrefix(url, "salt://"); ok {
		dir, _, _ = strings.Cut(in, "?")
	}
	names, err := c.listFiles(env, strings.Trim(dir, "/")+"/")
	files := value.NewList()
	for _, name := range names {
		file, ok, err := c.Locate("salt://"+name, env)
		if err != nil {
			return nil, err
		}
		if ok {
			files.Append(file)
		}
	}
	return files, err
}

// url returns the path of a file, or its content if dest is None. It does not copy.
func (c cp) url(from string, dest *string, env string, _, _ any) (any, error) {
	if dest == nil {
		return c.TreeText(from, env)
	}
	if *dest != "" {
		return nil, diag.Call.Hint(errors.New("copying to a destination changes the host, and templates only read"),
			"use a file.managed state")
	}
	return c.cacheFile(from, env, nil, nil, nil)
}

// Acting returns the functions that copy files and directories of the state tree to the host.
func Acting(f *function.Facts) function.Table {
	c := cp{f}
	fromSource, cached := map[string]string{"path": "source", "dest": "name"}, []string{"gzip", "verify_ssl", "use_etag"}
	destination := func(a function.Arguments) any { return a.Value("dest") }
	return function.StateFunctions(f, map[string]function.ByState{
		"cp.get_file": {Signature: "path, dest, makedirs=False", State: "file.managed", Rename: fromSource, Without: cached,
			Answer: destination},
		"cp.get_template": {Signature: "path, dest, template='jinja', makedirs=False", State: "file.managed",
			Rename: fromSource, Without: cached,
			Answer: destination},
	}).Add(function.Table{"cp.get_dir": function.Of("path, dest, saltenv=None, template=None, gzip=None, **kwargs",
		c.dir)})
}

// dir copies a directory of the state tree to one of the host, and returns the files there. As in Salt, the last
// element of the URL is part of the destination unless the URL ends with a slash.
func (c cp) dir(ctx context.Context, url, dest, env string, template, _ any, _ *value.Map) ([]string, error) {
	rest, ok := strings.CutPrefix(url, "salt://")
	if !ok {
		return nil, diag.Call.Hint(fmt.Errorf("%s is not a directory of the state tree", url), "write salt://DIRECTORY")
	}
	name, _, _ := strings.Cut(rest, "?saltenv=")
	dest = strings.TrimRight(dest, "/")
	if !strings.HasSuffix(name, "/") {
		dest += "/" + path.Base(name)
	}
	files, err := c.listFiles(env, name)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no directory %s with files", url)
	}
	arguments := value.NewMap("name", dest, "source", "salt://"+strings.TrimRight(rest, "/"), "__env__",
		c.Environment(env))
	if template != nil {
		arguments.Set("template", template)
	}
	if _, err := c.RunState(ctx, "file.recurse", arguments); err != nil {
		return nil, err
	}
	for i, file := range files {
		files[i] = dest + strings.TrimPrefix(file, strings.Trim(name, "/"))
	}
	return files, nil
}
