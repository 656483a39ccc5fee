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
	"github.com/corpus-agent/corpus-agent/packaging/seen"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CopyTree copies the content of a directory into another one, without following links. Another user may be changing
// the directory: what is not the same file any more is an error. skip reports whether to leave out a path, relative to
// the directory; nil copies everything.
func CopyTree(ctx context.Context, from, to string, skip func(name string) bool) error {
	tree, err := seen.Open(from)
	if err != nil {
		return err
	}
	defer tree.Close()
	var problems diag.List
	err = tree.Walk(func(e seen.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Name != "." && skip != nil && skip(filepath.FromSlash(e.Name)) {
			if e.Mode.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		target := filepath.Join(to, filepath.FromSlash(e.Name))
		switch {
		case e.Mode.IsDir():
			return os.MkdirAll(target, e.Mode.Perm()|0o700)
		case e.Mode.Type() == fs.ModeSymlink:
			return os.Symlink(e.Link, target)
		case e.Mode.IsRegular():
			return copyEntry(ctx, tree, e, target)
		}
		problems.Add(diag.Pos{File: e.Name},
			"it is not a file, directory or link; only these can be released").WithHint(diag.Tree,
			"remove it from the tree, or change the build so that it does not make it")
		return nil
	})
	return errors.Join(err, problems.Err())
}

func copyEntry(ctx context.Context, tree *seen.Tree, e seen.Entry, to string) error {
	in, err := tree.Open(e)
	if err != nil {
		return err
	}
	defer in.Close()
	return errors.Join(write(ctx, in, to, e.Mode.Perm()), in.Unchanged())
}

// copyInto copies one path of a tree to the same place in another.
func copyInto(ctx context.Context, from, to, name string) error {
	from, to = filepath.Join(from, name), filepath.Join(to, name)
	info, err := os.Lstat(from)
	if found, err := walk.Found(err); err != nil {
		return err
	} else if !found {
		return diag.Recipe.Hint(fmt.Errorf("the recipe names %s, which the build did not make", name),
			"correct the name in corpus.yaml, or have the build make it")
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return CopyTree(ctx, from, to, nil)
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	return copyFile(ctx, from, to, info.Mode().Perm())
}

func copyFile(ctx context.Context, from, to string, mode fs.FileMode) error {
	in, err := walk.OpenFile(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return write(ctx, in, to, mode)
}

// write writes a new file.
func write(ctx context.Context, in io.Reader, to string, mode fs.FileMode) (err error) {
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
