// Package clone checks who can change what git reads as configuration, or runs, in a clone.
//
// Git trusts a clone whose top directories belong to the user who runs it. It does not ask who else may write to its
// configuration: a group, an entry of an access control list, the owner of one file. Such a user names a program (a
// file system monitor, a filter, an ssh command, a hook), and git runs it as the user who runs git. Check refuses such
// a clone before git runs.
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

// Config is the environment that turns off the file system monitor, a program that only makes git faster, and adds
// other settings: keys and values in turn. Git passes it on to what it runs in submodules.
func Config(settings ...string) []string {
	settings = append([]string{"core.fsmonitor", ""}, settings...)
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings)/2)}
	for i, text := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_%s_%d=%s", []string{"KEY", "VALUE"}[i%2], i/2, text))
	}
	return env
}

// As is who runs git.
type As struct {
	UID  int
	Name string // for errors; "" for root
	Home string // for paths of the configuration that begin with ~/
}

// Check refuses, in a safe root, the clone that git would use in a directory if another user than root and the one who
// runs git can change its configuration, its hooks, a file that its configuration includes, or a part of the way to
// these. The clone is in the directory, or above it; where there is none, there is nothing to refuse.
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
	seen map[string]bool // what has been checked
}

// find returns the directory in which git finds a clone: dir, or the nearest one above it with .git or a bare
// repository; "" where there is none.
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

// absent drops the error of what does not exist.
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

// named are the parts of a repository that name programs, or lead to other parts.
func named() []string {
	return []string{"config", "config.worktree", "hooks", "info", "modules", "remotes", "branches", "commondir", "gitdir",
		"index", "HEAD", "objects/info"}
}

// repository checks what git reads in a repository, and in the one whose work tree it is. Hooks run in the directory
// top.
func (c check) repository(dir, top string) error {
	if c.seen[dir+"/"] {
		return nil
	}
	c.seen[dir+"/"] = true
	if err := c.only(dir); err != nil {
		return err
	}
	for _, name := range named() {
		if err := absent(c.root.Sole(path.Join(dir, name))); err != nil {
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

// only checks a file or directory, the way to it, and nothing in it.
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
	return absent(dir.Sole(path.Base(real)))
}

// configuration checks what a file of git's configuration names: files that it includes, and a directory of hooks.
func (c check) configuration(file, top string) error {
	if c.seen[file] {
		return nil
	}
	c.seen[file] = true
	if err := absent(c.root.Sole(file)); err != nil {
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
			err = absent(c.root.Sole(c.expand(top, s.value)))
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
