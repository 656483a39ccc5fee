package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// RemoveAll removes a name and everything below it. It is not an error if the name does not exist. The removal ends
// with its context, with the context's error, and leaves the rest.
func RemoveAll(ctx context.Context, path string) error {
	if err := removeAll(ctx, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}

func removeAll(ctx context.Context, path string) error {
	root, err := walk.Open(walk.Options{Dir: filepath.Dir(path)})
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.OpenDir("/")
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.RemoveAll(ctx, filepath.Base(path))
}

// moment is how long RemoveTemp outlasts its context.
const moment = time.Second

// RemoveTemp removes a directory of TempDir. If its context ends, it continues for a second, which is enough for a
// small tree, and leaves the rest to Sweep.
func RemoveTemp(ctx context.Context, path string) error {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(moment, cancel) })()
	if err := RemoveAll(late, path); late.Err() == nil {
		return err
	}
	return nil
}

// Sweep removes the temporary files that a killed process has left in a directory. The caller must ensure that no other
// process is writing there. A sweep ends with its context, and a later one continues with the rest.
func Sweep(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		errs = append(errs, RemoveAll(ctx, filepath.Join(dir, e.Name())))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// Discard removes a directory so that its name never leads to a part of its content. If its context ends, Sweep removes
// the rest.
func Discard(ctx context.Context, path string) error {
	temp, err := TempDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	// If the process is killed from here on, Sweep removes the rest.
	if err := os.Rename(path, filepath.Join(temp, filepath.Base(path))); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return RemoveAll(ctx, temp)
}
