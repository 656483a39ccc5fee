package self

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Restore restores the agent's own files to the state of a snapshot, and returns the files that it restored. It is for
// changes that cannot be undone in the way that they were made, such as the upgrade of a package whose earlier version
// no repository has: the kernel keeps the content of the running program, and the snapshot that of the small files.
func (s *Self) Restore(before Snapshot) (restored []string, err error) {
	var errs []error
	for _, name := range s.Changed(before) {
		was, known := before[name]
		switch {
		case name == s.Executable:
			err = s.restoreProgram()
		case !known || was.stamp == (stamp{}):
			err = remove(name)
		default:
			err = was.restore(name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("restoring %s: %w", name, err))
			continue
		}
		restored = append(restored, name)
	}
	return restored, errors.Join(errs...)
}

// Restart starts the timer by systemd if it was active before.
func (s *Self) Restart(ctx context.Context, before Units) error {
	if before.Timer.Active != "active" || s.Systemctl == nil {
		return nil
	}
	out, err := s.Systemctl(ctx, "start", Timer)
	if err != nil {
		return fmt.Errorf("starting %s again: %w: %s", Timer, err, strings.TrimSpace(out))
	}
	return nil
}

func (s *Self) restoreProgram() error {
	image := s.Image
	if image == "" {
		image = "/proc/self/exe"
	}
	info, err := os.Stat(image)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(image)
	if err != nil {
		return err
	}
	return put(s.Executable, data, info.Mode().Perm()|0o500)
}

// restore restores a small file or a link.
func (f file) restore(name string) error {
	switch {
	case f.target != "":
		if err := safe(name); err != nil {
			return err
		}
		if err := durable.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := remove(name); err != nil {
			return err
		}
		return os.Symlink(f.target, name)
	case f.content == nil:
		return errors.New("its content was not kept")
	}
	return put(name, f.content, fs.FileMode(f.mode).Perm())
}

func put(name string, data []byte, mode fs.FileMode) error {
	if err := safe(name); err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	info, err := os.Lstat(name)
	found, err := walk.Found(err)
	if err != nil {
		return err
	}
	if found && !info.Mode().IsRegular() {
		if err := remove(name); err != nil {
			return err
		}
	}
	return durable.WriteFile(name, data, mode)
}

func remove(name string) error {
	if err := safe(name); err != nil {
		return err
	}
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// safe returns an error for a path in a directory that another user can change.
func safe(name string) error {
	dir := filepath.Dir(name)
	for ; dir != "/"; dir = filepath.Dir(dir) {
		found, err := walk.Named(dir)
		if err != nil {
			return err
		}
		if found {
			break
		}
	}
	if !trusted(dir) {
		return fmt.Errorf("other users may write to %s", dir)
	}
	return nil
}
