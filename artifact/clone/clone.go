// Package clone checks who can change the configuration and the programs of a git clone.
//
// Git trusts a clone whose top directories belong to the user who runs it. It does not check who else may write to its
// configuration: a group, an entry of an access control list, the owner of one file. Such a user can name a program (a
// file system monitor, a filter, an ssh command, a hook) that git runs as the user who runs git. Check refuses such a
// clone before git runs.
package clone

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Config returns environment variables that turn off the file system monitor, a program that only makes git faster, and
// add other settings, given as alternating keys and values. Git passes the variables on to the commands that it runs in
// submodules.
func Config(settings ...string) []string {
	settings = append([]string{"core.fsmonitor", ""}, settings...)
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings)/2)}
	for i, text := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_%s_%d=%s", []string{"KEY", "VALUE"}[i%2], i/2, text))
	}
	return env
}

// As is the user who runs git.
type As struct {
	UID  int
	Name string // for errors; "" for root
	Home string // for paths of the configuration that begin with ~/
}

// Check checks the clone that git would use in a directory below a safe root. It returns an error if a user other than
// root and as can change the clone's configuration, its hooks, a file that its configuration includes, or a directory
// on the way to these. The clone is in dir or in a directory above it; if there is none, Check returns nil.
func Check(r *walk.Root, dir string, as As) error {
	if !r.Safe() {
		return nil
	}
	if as.UID != 0 {
		r = r.As(uint32(as.UID))
	}
	c := check{root: r, as: as, seen: map[string]bool{}}
	top, err := c.find(path.Clean(dir))
	if err == nil && top != "" {
		c.top = top
		err = c.workTree(top)
	}
	var unsafe *walk.UnsafeError
	if errors.As(err, &unsafe) {
		named := *unsafe
		named.Path, named.Tree, named.Program, named.Runner = c.top, true, false, as.Name
		return &named
	}
	return err
}

type check struct {
	root *walk.Root
	as   As
	top  string          // the directory of the clone
	seen map[string]bool // names that were checked
}

// find returns the directory in which git finds a clone: dir, or the nearest directory above it that has .git or is a
// bare repository; "" if there is none.
func (c check) find(dir string) (string, error) {
	for ; ; dir = path.Dir(dir) {
		if there, err := c.exists(path.Join(dir, ".git")); there || err != nil {
			return dir, err
		}
		if bare, err := c.bare(dir); bare || err != nil {
			return dir, err
		}
		if dir == "/" || dir == "." {
			return "", nil
		}
	}
}

func (c check) bare(dir string) (bool, error) {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if there, err := c.exists(path.Join(dir, name)); !there {
			return false, err
		}
	}
	return true, nil
}

func (c check) exists(p string) (bool, error) {
	f, err := c.root.OpenFile(p, unix.O_PATH)
	if err != nil {
		return false, absent(err)
	}
	return true, f.Close()
}

// absent returns nil for an error that means that a file does not exist, and other errors unchanged.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// workTree checks the clone with a work tree, or the bare repository, at a directory, and its submodules.
func (c check) workTree(dir string) error {
	if c.seen[dir] {
		return nil
	}
	c.seen[dir] = true
	if err := c.only(dir); err != nil {
		return err
	}
	repository := path.Join(dir, ".git")
	there, err := c.exists(repository)
	if err != nil {
		return err
	}
	if !there {
		return c.repository(dir, dir)
	}
	if err := c.only(repository); err != nil {
		return err
	}
	if text, err := c.read(repository); err == nil { // a file that names the repository
		named, _ := strings.CutPrefix(text, "gitdir:")
		repository = below(dir, strings.TrimSpace(named))
	} else if !errors.Is(err, walk.ErrNoFile) {
		return absent(err)
	}
	if err := c.repository(repository, dir); err != nil {
		return err
	}
	if err := c.submodules(dir); err != nil {
		return err
	}
	return c.gitlinks(repository, dir)
}

// named returns the names in a repository that configure programs or refer to other repositories.
func named() []string {
	return []string{"config", "config.worktree", "hooks", "info", "modules", "remotes", "branches", "commondir", "gitdir",
		"index", "HEAD", "objects/info"}
}

// repository checks the files that git reads in a repository, and in the repository that it refers to. Hooks run in the
// directory top.
func (c check) repository(dir, top string) error {
	if c.seen[dir+"/"] {
		return nil
	}
	c.seen[dir+"/"] = true
	if err := c.only(dir); err != nil {
		return err
	}
	for _, name := range named() {
		if err := absent(c.root.CheckRootOnly(path.Join(dir, name))); err != nil {
			return err
		}
	}
	for _, name := range []string{"config", "config.worktree"} {
		if err := c.configuration(path.Join(dir, name), top); err != nil {
			return err
		}
	}
	text, err := c.read(path.Join(dir, "commondir"))
	if err != nil {
		return absent(err)
	}
	return c.repository(below(dir, strings.TrimSpace(text)), top)
}

// only checks a file or directory and the way to it, but not the content of a directory.
func (c check) only(p string) error {
	if err := c.root.ByName(p); err != nil {
		return err
	}
	real, err := c.root.Resolve(p)
	if err != nil {
		return absent(err)
	}
	dir, err := c.root.OpenDir(path.Dir(real))
	if err != nil {
		return absent(err)
	}
	defer dir.Close()
	return absent(dir.CheckRootOnly(path.Base(real)))
}

// configuration checks a configuration file of git, the files that it includes, and the directory of hooks that it
// names.
func (c check) configuration(file, top string) error {
	if c.seen[file] {
		return nil
	}
	c.seen[file] = true
	if err := absent(c.root.CheckRootOnly(file)); err != nil {
		return err
	}
	text, err := c.read(file)
	if err != nil {
		return absent(err)
	}
	for _, s := range settings(text) {
		switch s.section + "." + s.key {
		case "include.path", "includeif.path":
			err = c.configuration(c.expand(path.Dir(file), s.value), top)
		case "core.hookspath", "core.attributesfile":
			err = absent(c.root.CheckRootOnly(c.expand(top, s.value)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c check) expand(dir, p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return path.Join("/", c.as.Home, rest)
	}
	return below(dir, p)
}

func below(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}
