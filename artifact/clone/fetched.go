package clone

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// CheckFetched checks a repository below a safe root from which root fetches; git also tries its name with `.git`. It
// returns an error if a user other than root can change anything in it, in a repository to which it refers (the file
// .git, commondir), or in the objects that it borrows (objects/info/alternates). Git compares only the owners of the
// first directory, and of the repository to which .git refers.
func CheckFetched(r *walk.Root, dir string) error {
	if !r.Safe() {
		return nil
	}
	c := check{root: r, seen: map[string]bool{}}
	return errors.Join(c.fetched(path.Clean(dir)), c.fetched(path.Clean(dir)+".git"))
}

func (c check) fetched(p string) error {
	if c.seen[p] {
		return nil
	}
	c.seen[p] = true
	if err := absent(c.root.CheckRootOnly(p)); err != nil {
		return err
	}
	others, err := c.references(p)
	for _, other := range others {
		if err := c.fetched(other); err != nil {
			return err
		}
	}
	return err
}

// references returns the directories to which a repository refers. p is also a directory with one, a file .git, or a
// directory of objects.
func (c check) references(p string) (all []string, err error) {
	for _, g := range []string{p, path.Join(p, ".git")} {
		for _, f := range []struct{ file, prefix, from string }{
			{g, "gitdir:", path.Dir(g)},
			{path.Join(g, "commondir"), "", g},
			{path.Join(g, "objects/info/alternates"), "", path.Join(g, "objects")},
			{path.Join(g, "info/alternates"), "", g},
		} {
			text, err := c.read(f.file)
			if err != nil && !errors.Is(err, walk.ErrNoFile) && absent(err) != nil {
				return nil, err
			}
			all = append(all, directories(text, f.prefix, f.from)...)
		}
	}
	return all, nil
}

// directories returns the directories in the lines of a file, without a prefix, relative to another directory.
func directories(text, prefix, from string) (all []string) {
	for line := range strings.Lines(text) {
		named, refers := strings.CutPrefix(strings.TrimSpace(line), prefix)
		if named = strings.TrimSpace(named); !refers || named == "" || named[0] == '#' {
			continue
		}
		if plain, err := strconv.Unquote(named); err == nil {
			named = plain
		}
		all = append(all, below(from, named))
	}
	return all
}
