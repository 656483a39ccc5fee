package file

import (
	"context"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// found is something that a walk came by.
type found struct {
	path string
	info host.Info // of the link itself, where it is one
	dir  bool      // a directory, or a link to one, as it shows in a listing
}

// walk lists what is below a directory: its files, then its directories, then what is in each of
// those. Links are not followed. depth is how many directories further down are entered; negative
// for all.
func walk(ctx context.Context, h *host.Host, dir string, depth int) ([]found, error) {
	return walkFrom(ctx, h, dir, depth, 0)
}

func walkFrom(ctx context.Context, h *host.Host, dir string, depth, level int) ([]found, error) {
	if err := host.Descend(ctx, dir, level); err != nil {
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
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// list gives what is in one directory: its files, then its directories.
func list(ctx context.Context, h *host.Host, dir string) (files, dirs []found, err error) {
	names, err := h.Files.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		f := found{path: path.Join(dir, name)}
		if f.info, err = h.Files.Lstat(f.path); err != nil {
			return nil, nil, err
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
