package file

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
)

// found is a path that a walk has found.
type found struct {
	path string
	info host.Info // not following links
	dir  bool      // a directory or a link to one, as a listing shows it
}

// walk lists the content of a directory: its files, its directories, then the content of each of those. It does
// not follow links. depth is the number of levels to descend, negative for no limit.
func walk(ctx context.Context, h *host.Host, dir string, depth int) ([]found, error) {
	return walkFrom(ctx, h, dir, depth, 0)
}

func walkFrom(ctx context.Context, h *host.Host, dir string, depth, level int) ([]found, error) {
	if err := descent.Enter(ctx, dir, level); err != nil {
		return nil, err
	}
	files, dirs, err := list(ctx, h, dir)
	if err != nil || depth == 0 {
		return files, err
	}
	all := slices.Concat(files, dirs)
	for _, d := range dirs {
		if !d.info.IsDir() {
			continue
		}
		below, err := walkFrom(ctx, h, d.path, depth-1, level+1)
		if vanished(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// vanished reports whether an error for a path from a listing means that another process has removed the path since
// then. A state does not fail because of that: services create and remove files of their own all the time.
func vanished(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// list returns the files and the directories directly in a directory.
func list(ctx context.Context, h *host.Host, dir string) (files, dirs []found, err error) {
	names, err := h.Files.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		f, there := found{path: path.Join(dir, name)}, false
		if f.info, there, err = look(h.Files.Lstat, f.path); err != nil {
			return nil, nil, err
		}
		if !there {
			continue // see vanished
		}
		f.dir = f.info.IsDir() || f.info.IsLink() && showsAsDir(h, f.path)
		if f.dir {
			dirs = append(dirs, f)
		} else {
			files = append(files, f)
		}
	}
	return files, dirs, nil
}
