//go:build hosts

package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// disk has the writable layer of a host over the tree of its base.
type disk struct {
	dir   string // contains root, the mount point, and layer, the written files
	tree  string
	crash bool // a separate file system, which can lose data that was not synced
}

func (d *disk) root() string  { return filepath.Join(d.dir, "root") }
func (d *disk) layer() string { return filepath.Join(d.dir, "layer") }
func (d *disk) image() string { return filepath.Join(d.dir, "image") }

// mount mounts the disk, which is made the first time.
func (d *disk) mount() error {
	if err := errors.Join(os.MkdirAll(d.root(), 0o755), os.MkdirAll(d.layer(), 0o755)); err != nil {
		return err
	}
	if !mounted(d.layer()) {
		if err := d.mountLayer(); err != nil {
			return err
		}
	}
	upper, work := filepath.Join(d.layer(), "upper"), filepath.Join(d.layer(), "work")
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	_, err := command("mount", "-t", "overlay", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", d.tree, upper,
		work), "lab", d.root())
	return err
}

func (d *disk) mountLayer() error {
	if !d.crash {
		_, err := command("mount", "-t", "tmpfs", "-o", "size=2g,mode=755", "lab", d.layer())
		return err
	}
	if _, err := os.Stat(d.image()); err != nil {
		if err := os.WriteFile(d.image(), nil, 0o600); err != nil {
			return err
		}
		if err := os.Truncate(d.image(), 1<<30); err != nil {
			return err
		}
		if _, err := command("mkfs.ext4", "-q", d.image()); err != nil {
			return err
		}
	}
	if err := d.detach(); err != nil {
		return err
	}
	_, err := command("mount", "-o", "loop", d.image(), d.layer())
	return err
}

// detach ensures that the next mount reads the image from its file, and not from the frozen file system: the kernel
// keeps that as long as a mount namespace of another process has it. In this case the host continues with a copy of the
// image.
func (d *disk) detach() error {
	for range 10 {
		used, err := command("losetup", "-n", "-O", "NAME", "-j", d.image())
		if err != nil || strings.TrimSpace(used) == "" {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	fresh := d.image() + ".fresh"
	if _, err := command("cp", "--sparse=always", d.image(), fresh); err != nil {
		return err
	}
	return os.Rename(fresh, d.image())
}

// unmount unmounts the disk. A layer in memory stays there until remove.
func (d *disk) unmount() error {
	if err := release(d.root()); err != nil || !d.crash {
		return err
	}
	return release(d.layer())
}

// freeze makes all further writes fail, and writes nothing to the disk: data that was neither synced nor in the file
// system's journal is lost.
func (d *disk) freeze() error {
	const shutdown, noFlush = 0x8004587D, 2 // EXT4_IOC_SHUTDOWN
	f, err := os.Open(d.layer())
	if err != nil {
		return err
	}
	defer f.Close()
	flags := make([]byte, 4)
	binary.NativeEndian.PutUint32(flags, noFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown,
		uintptr(unsafe.Pointer(&flags[0]))); errno != 0 {
		return fmt.Errorf("freezing %s: %w", d.layer(), errno)
	}
	return nil
}

// mounts returns the mount points at and below a directory, the deepest first.
func mounts(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && (fields[1] == dir || strings.HasPrefix(fields[1], dir+"/")) {
			found = append(found, fields[1])
		}
	}
	slices.Reverse(found) // later mounts are deeper, or above
	return found, nil
}

func mounted(dir string) bool {
	found, err := mounts(dir)
	return err != nil || slices.Contains(found, dir)
}

// release unmounts a directory; processes that were killed may hold it for a moment.
func release(dir string) error {
	var err error
	for range 100 {
		if !mounted(dir) {
			return nil
		}
		if err = syscall.Unmount(dir, 0); err == nil {
			continue
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("unmounting %s: %w", dir, err)
}

// removeTree removes a directory, after it has unmounted everything in it. If that fails, it removes nothing, since the
// mounted data could belong to others.
func removeTree(dir string) error {
	found, err := mounts(dir)
	if err != nil {
		return err
	}
	for _, place := range found {
		if err := release(place); err != nil {
			return err
		}
	}
	if left, err := mounts(dir); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not removed: something is mounted at %s", dir, strings.Join(left, ", ")))
	}
	return os.RemoveAll(dir)
}
