package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// full makes a directory with many files and returns its path.
func full(t *testing.T, dir string) string {
	t.Helper()
	for i := range 20 {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// endsAtSeventhCall is a context that ends when Err has been called seven times.
type endsAtSeventhCall struct {
	context.Context
	asked int
}

func (s *endsAtSeventhCall) Err() error {
	if s.asked++; s.asked > 7 {
		return context.Canceled
	}
	return nil
}

// TestRemovalsEndWithTheirContext ends each removal in its middle. The next sweep removes the rest.
func TestRemovalsEndWithTheirContext(t *testing.T) {
	for name, remove := range map[string]func(ctx context.Context, dir string) error{
		"RemoveAll": func(ctx context.Context, dir string) error { return RemoveAll(ctx, full(t, dir+"/"+tempPrefix+"a")) },
		"Discard":   func(ctx context.Context, dir string) error { return Discard(ctx, full(t, dir+"/a")) },
		"Sweep": func(ctx context.Context, dir string) error {
			full(t, dir+"/"+tempPrefix+"a")
			full(t, dir+"/"+tempPrefix+"b")
			return Sweep(ctx, dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := remove(&endsAtSeventhCall{Context: t.Context()}, dir); !errors.Is(err, context.Canceled) {
				t.Errorf("the removal: %v", err)
			}
			left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
			if err != nil || len(left) == 0 {
				t.Errorf("nothing is left, %v", err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "a")); err == nil {
				t.Error("the directory still exists with a part of its content")
			}
			if err := Sweep(t.Context(), dir); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("after a sweep %v are left, %v", left, err)
			}
		})
	}
}

// TestRemoveTempOutlastsItsContext removes a small tree completely after its context has ended, and a large one only in
// part.
func TestRemoveTempOutlastsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := full(t, filepath.Join(t.TempDir(), "a"))
	started := time.Now()
	err := RemoveTemp(ctx, dir)
	if took := time.Since(started); err != nil || took > 30*time.Second {
		t.Errorf("it took %v: %v", took, err)
	}
	if _, err := os.Lstat(dir); err == nil && time.Since(started) < moment {
		t.Error("a small tree is left")
	}
}
