package clone

import (
	"fmt"
	"path"
	"strings"
)

// submodules checks the clones that .gitmodules lists in a work tree, since git reads them.
func (c check) submodules(dir string) error {
	file := path.Join(dir, ".gitmodules")
	if err := absent(c.root.CheckRootOnly(file)); err != nil {
		return err
	}
	text, err := c.read(file)
	if err != nil {
		return absent(err)
	}
	for _, s := range settings(text) {
		at := path.Join(dir, s.value)
		if s.section != "submodule" || s.key != "path" || !strings.HasPrefix(at, strings.TrimRight(dir, "/")+"/") {
			continue
		}
		if err := c.submodule(at); err != nil {
			return err
		}
	}
	return nil
}

// submodule checks the working tree of a submodule, if it was checked out.
func (c check) submodule(dir string) error {
	there, err := c.exists(path.Join(dir, ".git"))
	if err != nil || !there {
		return err
	}
	return c.workTree(dir)
}

// largestIndex is the length in bytes of the longest index that is read.
const largestIndex = 1 << 28

// gitlinks checks the clones in a work tree that are entries of the index of its repository.
func (c check) gitlinks(repository, dir string) error {
	for _, file := range c.indexes(repository) {
		text, err := c.readUpTo(file, largestIndex)
		if absent(err) != nil {
			return err
		}
		if err != nil || text == "" {
			continue
		}
		links, err := gitlinks([]byte(text))
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		for _, link := range links {
			at := path.Join(dir, link)
			there, err := c.exists(path.Join(at, ".git"))
			if err == nil && there {
				err = c.workTree(at)
			} else if err == nil {
				err = c.only(at)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// indexes returns the paths of the index of a repository and of its shared indexes.
func (c check) indexes(repository string) []string {
	files := []string{path.Join(repository, "index")}
	d, err := c.root.OpenDir(repository)
	if err != nil {
		return files
	}
	defer d.Close()
	names, _ := d.ReadDir()
	for _, name := range names {
		if strings.HasPrefix(name, "sharedindex.") {
			files = append(files, path.Join(repository, name))
		}
	}
	return files
}
