//go:build hosts

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// path returns the path on this machine of a file of the host. A running host has its own mounts, such as /run, which
// are not in its filesystem on disk.
func (h *Host) path(name string) string {
	if h.leader != 0 {
		return filepath.Join("/proc", strconv.Itoa(h.leader), "root", name)
	}
	return filepath.Join(h.Root, name)
}

// Write writes a file of the host, with the directories above it.
func (h *Host) Write(path, content string) {
	h.t.Helper()
	h.write(path, []byte(content), 0o644)
}

// Program writes an executable file of the host.
func (h *Host) Program(path, content string) {
	h.t.Helper()
	h.write(path, []byte(content), 0o755)
}

func (h *Host) write(path string, content []byte, mode os.FileMode) {
	h.t.Helper()
	file := h.path(path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(file, content, mode); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		h.t.Fatal(err)
	}
}

// Link makes a symbolic link on the host.
func (h *Host) Link(target, path string) {
	h.t.Helper()
	file := h.path(path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.Symlink(target, file)); err != nil {
		h.t.Fatal(err)
	}
}

// Read reads a file of the host.
func (h *Host) Read(path string) string {
	h.t.Helper()
	data, err := os.ReadFile(h.path(path))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

// Exists reports whether the host has a file of a name.
func (h *Host) Exists(path string) bool {
	_, err := os.Lstat(h.path(path))
	return err == nil
}

// Copy copies a file of this machine to the host, with its mode.
func (h *Host) Copy(from, to string) {
	h.t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		h.t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(to, data, info.Mode().Perm())
}

// CopyTree copies a directory of this machine to the host.
func (h *Host) CopyTree(from, to string) {
	h.t.Helper()
	if err := os.CopyFS(h.path(to), os.DirFS(from)); err != nil {
		h.t.Fatal(err)
	}
}
