package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Base is a clean system to build in, so that a laptop produces what the server needs: a tree that
// debootstrap makes once and that is kept, and a throwaway copy of it for each build.
type Base struct {
	Root string // of the copy
	dirs []mapped
}

// mapped is a directory of this machine and how it is called inside.
type mapped struct{ outside, inside string }

// mirrors are where the packages of a system come from; CORPUS_MIRROR names another.
func mirrors() map[string]string {
	return map[string]string{"debian": "http://deb.debian.org/debian", "ubuntu": "http://archive.ubuntu.com/ubuntu"}
}

// OpenBase makes the copy of a system, such as debian/bookworm, with packages that a build takes.
// cache is where systems are kept, work where the copy goes. It takes root's rights and debootstrap.
func OpenBase(ctx context.Context, system string, packages []string, cache, work string, log io.Writer) (*Base, error) {
	family, suite, _ := strings.Cut(system, "/")
	mirror := mirrors()[family]
	if m := os.Getenv("CORPUS_MIRROR"); m != "" {
		mirror = m
	}
	if os.Geteuid() != 0 {
		return nil, diag.WithHint(errors.New("building in a base system takes root's rights"), "run corpus build as root, or leave build.base out to build on this machine")
	}
	kept := filepath.Join(cache, strings.ReplaceAll(system, "/", "-"))
	if err := bootstrap(ctx, suite, mirror, kept, log); err != nil {
		return nil, err
	}
	b := &Base{Root: filepath.Join(work, "base")}
	if err := explain([]string{"cp"}, logged(ctx, log, "cp", "-a", "--reflink=auto", kept, b.Root)); err != nil {
		return nil, err
	}
	if len(packages) == 0 {
		return b, nil
	}
	install := append([]string{"apt-get", "install", "-y", "-q", "--no-install-recommends"}, packages...)
	if err := b.Run(ctx, Command{Dir: b.Root, Args: []string{"apt-get", "update", "-q"}, Log: log}); err != nil {
		return nil, err
	}
	return b, b.Run(ctx, Command{Dir: b.Root, Args: install, Log: log, Env: []string{"DEBIAN_FRONTEND=noninteractive"}})
}

// bootstrap makes the system that is kept, under another name until it is whole.
func bootstrap(ctx context.Context, suite, mirror, kept string, log io.Writer) error {
	if _, err := os.Stat(kept); err == nil {
		return nil
	}
	making := kept + ".making"
	if err := errors.Join(os.RemoveAll(making), os.MkdirAll(filepath.Dir(kept), 0o755)); err != nil {
		return err
	}
	args := []string{"debootstrap", "--variant=minbase", "--include=ca-certificates", suite, making, mirror}
	if err := explain(args, apart(ctx, log, args...)); err != nil {
		return errors.Join(err, os.RemoveAll(making))
	}
	return os.Rename(making, kept)
}

// apart runs a program that mounts things, with mounts of its own: what it leaves mounted when it is
// stopped is nowhere then, and a tree that is removed afterwards leads to no other.
func apart(ctx context.Context, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}

func logged(ctx context.Context, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}

// Put moves a directory of this machine into the base; programs find it under the name given.
func (b *Base) Put(outside, inside string) error {
	target := filepath.Join(b.Root, inside)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := CopyTree(outside, target, nil); err != nil {
		return fmt.Errorf("copying into the base: %w", err)
	}
	b.dirs = append(b.dirs, mapped{outside: target, inside: inside})
	return nil
}

// Inside is part of Runner.
func (b *Base) Inside(path string) string {
	if rel, err := filepath.Rel(b.Root, path); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.Join("/", rel)
	}
	return path
}

// Run is part of Runner. The program sees the base as /, with processes and mounts of its own.
func (b *Base) Run(ctx context.Context, c Command) error {
	script := `mount -t proc proc /proc 2>/dev/null; cd "$0" && exec "$@"`
	args := append([]string{"-c", script, b.Inside(c.Dir)}, c.Args...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Stdout, cmd.Stderr = c.Log, c.Log
	cmd.Env = append(environment("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "/root"), c.Env...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// Unsharing mounts makes them private first, so nothing mounted here is seen outside.
		Chroot: b.Root, Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL,
	}
	return explain(c.Args, cmd.Run())
}
