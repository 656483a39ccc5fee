package process_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

func TestUnreadableProgramIsNotMissing(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", "/nowhere:"+bin)
	if _, err := process.Look("tool"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a program that does not exist: %v", err)
	}
	if err := os.Symlink(strings.Repeat("x", 300), filepath.Join(bin, "tool")); err != nil {
		t.Fatal(err)
	}
	if _, err := process.Look("tool"); errors.Is(err, exec.ErrNotFound) || !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a program that cannot be looked at: %v", err)
	}
	if err := os.Remove(filepath.Join(bin, "tool")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "tool"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if file, err := process.Look("tool"); err != nil || file != filepath.Join(bin, "tool") {
		t.Errorf("an existing program: %s, %v", file, err)
	}
}
