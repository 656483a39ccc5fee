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

// Base is a clean system to build in, so that builds on any machine suit the system of the servers: for each build, a
// temporary copy of a tree that debootstrap makes once and that is kept.
type Base struct {
	Root string // the copy
	dirs []mapped
}

// mapped is a directory of this machine and its name inside the base.
type mapped struct{ outside, inside string }

// Opening configures OpenBase.
type Opening struct {
	System   string   // such as debian/bookworm
	Packages []string // the packages that the build needs
	Cache    string   // the directory in which systems are kept
	Work     string   // the directory in which the copy is made
	Log      io.Writer
	Waiting  func(string) // called with the reason why OpenBase waits; may be nil
}

// OpenBase makes a copy of a system. It needs root's rights and debootstrap.
func OpenBase(ctx context.Context, o Opening) (*Base, error) {
	if os.Geteuid() != 0 {
		return nil, diag.Build.Hint(errors.New("building in a base system needs root"),
			"run corpus build as root, or leave build.base out to build on this machine")
	}
	from := kept(o.System, o.Cache)
	if err := from.ensure(ctx, o.Log, o.notify); err != nil {
		return nil, err
	}
	b := &Base{Root: filepath.Join(o.Work, "base")}
	if err := explain([]string{"cp"}, logged(ctx, o.Log, "cp", "-a", "--reflink=auto", from.tree, b.Root)); err != nil {
		return nil, err
	}
	if len(o.Packages) == 0 {
		return b, nil
	}
	install := append([]string{"apt-get", "install", "-y", "-q", "--no-install-recommends"}, o.Packages...)
	if err := b.Run(ctx, Command{Dir: b.Root, Args: []string{"apt-get", "update", "-q"}, Log: o.Log}); err != nil {
		return nil, err
	}
	return b, b.Run(ctx, Command{Dir: b.Root, Args: install, Log: o.Log, Env: []string{"DEBIAN_FRONTEND=noninteractive"}})
}

// notify writes a text to the log and passes it to Waiting.
func (o Opening) notify(text string) {
	_, _ = fmt.Fprintln(o.Log, text) // if the log fails, the build fails when a program writes to it
	if o.Waiting != nil {
		o.Waiting(text)
	}
}

func logged(ctx context.Context, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}

// Put moves a directory of this machine into the base, where programs find it under the name inside.
func (b *Base) Put(ctx context.Context, outside, inside string) error {
	target := filepath.Join(b.Root, inside)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := CopyTree(ctx, outside, target, nil); err != nil {
		return fmt.Errorf("copying into the base: %w", err)
	}
	b.dirs = append(b.dirs, mapped{outside: target, inside: inside})
	return nil
}

// Inside implements Runner.
func (b *Base) Inside(path string) string {
	if rel, err := filepath.Rel(b.Root, path); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.Join("/", rel)
	}
	return path
}

// Run implements Runner. The program sees the base as /, with processes and mounts of its own.
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
