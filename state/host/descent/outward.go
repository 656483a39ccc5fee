package descent

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// LeadsOut reports whether a symbolic link in the tree dir may lead out of it. name is the path of the link below dir.
// The directories above the link are not links, so .. at the start of its target is the parent directory in the tree.
// After a name, .. is the parent directory only if the tree has a directory of that name, since the name may be a link.
func LeadsOut(dir, name, target string, isDir func(name string) bool) bool {
	at, named := path.Dir(name), false
	if path.IsAbs(target) {
		below, ok := strings.CutPrefix(target+"/", dir+"/")
		if !ok {
			return true
		}
		at, target = ".", below
	}
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			at, named = path.Join(at, part), true
		case at == "." || named && !isDir(at):
			return true
		default:
			at = path.Dir(at)
		}
	}
	return false
}

// OutwardLinks returns the targets of the symbolic links below a directory that may lead out of it, by their names
// below it. It skips directories with the name skip, and files of another user than the owner of the directory: root
// does not follow a link of such a user. The result is empty if the directory does not exist.
func OutwardLinks(ctx context.Context, files host.Files, dir, skip string) (map[string]string, error) {
	dir = path.Clean(dir)
	info, err := files.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := outward{files: files, dir: dir, skip: skip, owner: info.UID, found: map[string]string{}}
	return t.found, t.below(ctx, ".", 0)
}

// outward searches for links that lead out of a directory.
type outward struct {
	files     host.Files
	dir, skip string
	owner     int
	found     map[string]string
}

func (t outward) below(ctx context.Context, at string, level int) error {
	if err := Enter(ctx, path.Join(t.dir, at), level); err != nil {
		return err
	}
	names, err := t.files.ReadDir(path.Join(t.dir, at))
	if err != nil {
		return err
	}
	for _, n := range names {
		name := path.Join(at, n)
		info, err := t.files.Lstat(path.Join(t.dir, name))
		switch {
		case err != nil:
			return err
		case info.UID != t.owner:
		case info.IsDir() && n != t.skip:
			err = t.below(ctx, name, level+1)
		case info.IsLink():
			err = t.look(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t outward) look(name string) error {
	target, err := t.files.Readlink(path.Join(t.dir, name))
	if err == nil && LeadsOut(t.dir, name, target, t.isDir) {
		t.found[name] = target
	}
	return err
}

func (t outward) isDir(name string) bool {
	info, err := t.files.Lstat(path.Join(t.dir, name))
	return err == nil && info.IsDir()
}
