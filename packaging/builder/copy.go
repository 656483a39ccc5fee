package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CopyTree copies the content of a directory into another one, without following links. skip reports whether to
// leave out a path, relative to the directory; nil copies everything.
func CopyTree(ctx context.Context, from, to string, skip func(name string) bool) error {
	var problems diag.List
	err := filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if name != "." && skip != nil && skip(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() && !d.Type().IsRegular() && d.Type() != fs.ModeSymlink {
			problems.Add(diag.Pos{File: name},
				"it is not a file, directory or link; only these can be released").WithHint(diag.Tree,
				"remove it from the tree, or change the build so that it does not make it")
			return nil
		}
		return copyOne(ctx, file, filepath.Join(to, name), d)
	})
	return errors.Join(err, problems.Err())
}

// copyInto copies one path of a tree to the same place in another.
func copyInto(ctx context.Context, from, to, name string) error {
	if found, err := walk.Named(filepath.Join(from, name)); err != nil {
		return err
	} else if !found {
		return diag.Recipe.Hint(fmt.Errorf("the recipe names %s, which the build did not make", name),
			"correct the name in corpus.yaml, or have the build make it")
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
		return err
	}
	return CopyTree(ctx, filepath.Join(from, name), filepath.Join(to, name), nil)
}

func copyOne(ctx context.Context, from, to string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case d.IsDir():
		return os.MkdirAll(to, info.Mode().Perm()|0o700)
	case d.Type() == fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	return copyFile(ctx, from, to, info.Mode().Perm())
}

func copyFile(ctx context.Context, from, to string, mode fs.FileMode) (err error) {
	in, err := walk.OpenFile(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	_, err = io.Copy(out, artifact.Stoppable(ctx, in))
	return err
}
