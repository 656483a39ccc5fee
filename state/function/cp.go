package function

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cp reads the state tree. The tree is on this host, so nothing is ever copied into a cache: what
// Salt calls cached is the file itself.
type cp struct{ *Facts }

func cpTable(f *Facts) Table {
	c := cp{f}
	return Table{
		"cp.envs":                 Of("", c.envs),
		"cp.list_states":          Of("saltenv=None", c.listStates),
		"cp.list_master":          Of("saltenv=None, prefix=''", c.listFiles),
		"cp.list_master_dirs":     Of("saltenv=None, prefix=''", c.listFolders),
		"cp.list_master_symlinks": Of("saltenv=None, prefix=''", func(_, _ any) *value.Map { return value.NewMap() }),
		"cp.list_minion":          Of("saltenv=None", func(any) *value.List { return value.NewList() }),
		"cp.get_file_str":         Of("path, saltenv=None", c.text),
		"cp.hash_file":            Of("path, saltenv=None", c.hash),
		"cp.stat_file":            Of("path, saltenv=None, octal=True", c.mode),
		"cp.is_cached":            Of("path, saltenv=None", c.cached),
		"cp.cache_file":           Of("path, saltenv=None, source_hash=None, verify_ssl=True, use_etag=False", c.cacheFile),
		"cp.get_url":              Of("path, dest='', saltenv=None, makedirs=False, source_hash=None", c.url),
	}
}

func (c cp) tree() (*roots.Roots, error) {
	if c.States == nil {
		return nil, errors.New("there is no state tree")
	}
	return c.States, nil
}

func (c cp) envs() ([]string, error) {
	tree, err := c.tree()
	if err != nil {
		return nil, err
	}
	return tree.Envs(), nil
}

func (c cp) listStates(env string) ([]string, error) {
	tree, err := c.tree()
	if err != nil {
		return nil, err
	}
	return tree.States(c.env(env))
}

func (c cp) listFiles(env, prefix string) ([]string, error) {
	return c.below(prefix, func(tree *roots.Roots) ([]string, error) { return tree.Files(c.env(env)) })
}

func (c cp) listFolders(env, prefix string) ([]string, error) {
	return c.below(prefix, func(tree *roots.Roots) ([]string, error) { return tree.Folders(c.env(env)) })
}

func (c cp) below(prefix string, list func(*roots.Roots) ([]string, error)) ([]string, error) {
	tree, err := c.tree()
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

// locate finds the file that a URL means; ok is false where there is none. Only what is on this host
// can be found.
func (c cp) locate(url, env string) (file string, ok bool, err error) {
	scheme, rest, hasScheme := strings.Cut(url, "://")
	switch {
	case !hasScheme && path.IsAbs(url):
		ok, err := c.exists(url)
		return url, ok, err
	case !hasScheme:
		return "", false, diag.WithHint(fmt.Errorf("%q is neither an absolute path nor a URL", url), "write salt://%s for a file of the state tree", url)
	case scheme == "file":
		ok, err := c.exists(rest)
		return rest, ok, err
	case scheme != "salt":
		return "", false, diag.WithHint(fmt.Errorf("%s would be downloaded, and templates only read what is here", url),
			"download it in a file.managed state, or read it with http.query")
	}
	tree, err := c.tree()
	if err != nil {
		return "", false, err
	}
	name, named, _ := strings.Cut(rest, "?saltenv=")
	if named != "" {
		env = named
	}
	return tree.Find(c.env(env), name)
}

// home is what the file that locate found for a URL lies on: trees may lie elsewhere than the host's
// files.
func (f *Facts) home(url string) *host.Host {
	if f.Trees != nil && strings.HasPrefix(url, "salt://") {
		return &host.Host{Files: f.Trees}
	}
	return f.Host
}

func (c cp) exists(file string) (bool, error) {
	info, err := c.Host.Files.Stat(file)
	ok, err := there(err)
	return ok && info.IsRegular(), err
}

// text is the content of a file, or False.
func (c cp) text(url, env string) (any, error) {
	file, ok, err := c.locate(url, env)
	if err != nil || !ok {
		return false, err
	}
	return readText(c.home(url), file)
}

func (c cp) hash(url, env string) (any, error) {
	file, ok, err := c.locateBare(url, env)
	if err != nil || !ok {
		return "", err
	}
	data, err := readText(c.home(url), file)
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

// locateBare is locate for the functions that know the tree and absolute paths only, and answer with
// nothing where others fail.
func (c cp) locateBare(url, env string) (file string, ok bool, err error) {
	if !strings.HasPrefix(url, "salt://") && !path.IsAbs(url) {
		return "", false, nil
	}
	return c.locate(url, env)
}

// mode is the mode of a file: four octal digits, or all of the kernel's bits as a number.
func (c cp) mode(url, env string, octal bool) (any, error) {
	file, ok, err := c.locateBare(url, env)
	if err != nil || !ok {
		return nil, err
	}
	info, err := c.home(url).Files.Stat(file)
	if err != nil {
		return nil, err
	}
	if !octal {
		return int(rawMode(info.Mode)), nil
	}
	return modeText(info.Mode), nil
}

func (c cp) cached(url, env string) (any, error) {
	file, _, err := c.locateBare(url, env)
	return file, err
}

// cacheFile is where a file of the tree lies; False where there is none.
func (c cp) cacheFile(url, env string, _, _, _ any) (any, error) {
	file, ok, err := c.locate(url, env)
	if !ok && !path.IsAbs(file) {
		return false, err
	}
	return file, err
}

// url is where a file lies, or its content if dest is None. It copies nothing.
func (c cp) url(from string, dest *string, env string, _, _ any) (any, error) {
	if dest == nil {
		return c.text(from, env)
	}
	if *dest != "" {
		return nil, diag.WithHint(errors.New("copying to a destination is acting, and templates only read"), "use a file.managed state")
	}
	return c.cacheFile(from, env, nil, nil, nil)
}

// rawMode is a mode as the kernel has it, kind of file included.
func rawMode(mode fs.FileMode) uint32 {
	raw := uint32(mode.Perm())
	for _, bit := range []struct {
		raw  uint32
		mode fs.FileMode
	}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}} {
		if mode&bit.mode != 0 {
			raw |= bit.raw
		}
	}
	switch mode.Type() {
	case fs.ModeDir:
		return raw | 0o040000
	case fs.ModeSymlink:
		return raw | 0o120000
	case fs.ModeNamedPipe:
		return raw | 0o010000
	case fs.ModeSocket:
		return raw | 0o140000
	case fs.ModeDevice:
		return raw | 0o060000
	case fs.ModeDevice | fs.ModeCharDevice:
		return raw | 0o020000
	}
	return raw | 0o100000
}

// modeText writes the permissions of a mode as Salt does: four octal digits.
func modeText(mode fs.FileMode) string { return fmt.Sprintf("%04o", rawMode(mode)&0o7777) }
