package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// system is a base system that is kept. It is made under another name and renamed when it is complete, by one
// process at a time.
type system struct {
	name, suite, mirror string
	tree                string // directory of the system
}

// mirrors returns the default URLs from which the packages of systems are fetched.
func mirrors() map[string]string {
	return map[string]string{"debian": "http://deb.debian.org/debian", "ubuntu": "http://archive.ubuntu.com/ubuntu"}
}

// kept returns the place and the mirror of a system; CORPUS_MIRROR overrides the default mirror. Systems from different
// mirrors are different, since a mirror may be a snapshot of a certain day.
func kept(name, cache string) system {
	family, suite, _ := strings.Cut(name, "/")
	s := system{name: name, suite: suite, mirror: mirrors()[family], tree: filepath.Join(cache, family+"-"+suite)}
	if m := os.Getenv("CORPUS_MIRROR"); m != "" && m != s.mirror {
		sum := sha256.Sum256([]byte(m))
		s.mirror = m
		s.tree += "-" + hex.EncodeToString(sum[:4])
	}
	return s
}

// ensure makes the system unless it exists. While another process makes it, ensure calls waiting with the reason,
// waits, and uses the result.
func (s system) ensure(ctx context.Context, log io.Writer, waiting func(string)) error {
	if s.there() {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(s.tree), 0o755); err != nil {
		return err
	}
	release, err := s.turn(ctx, waiting)
	if err != nil {
		return err
	}
	defer release()
	if s.there() {
		return nil
	}
	return s.bootstrap(ctx, log)
}

func (s system) there() bool {
	info, err := os.Stat(s.tree)
	return err == nil && info.IsDir()
}

// turn waits until no other process makes the system. The kernel releases the lock of a killed process. The file is not
// removed, since that would race with processes that wait for the lock.
func (s system) turn(ctx context.Context, waiting func(string)) (release func(), err error) {
	f, err := os.OpenFile(s.tree+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for wait, waits := 10*time.Millisecond, false; ; wait = min(2*wait, time.Second) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", f.Name(), err), f.Close())
		}
		if !waits {
			waits = true
			waiting(fmt.Sprintf("waiting for the base system %s, which %s is making in %s", s.name,
				maker(f.Name()), filepath.Dir(s.tree)))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
	err = errors.Join(f.Truncate(0), sign(f))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = errors.Join(f.Truncate(0), f.Close()) }, nil // closing unlocks
}

// sign records that this process holds the lock, for processes that wait.
func sign(f *os.File) error {
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// maker describes the process that holds a lock.
func maker(lock string) string {
	data, err := os.ReadFile(lock)
	pid := 0
	if _, scanErr := fmt.Sscan(string(data), &pid); err != nil || scanErr != nil {
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}

// bootstrap makes the system under a temporary name until it is complete. A tree that exists under that name was
// left by a killed process.
func (s system) bootstrap(ctx context.Context, log io.Writer) error {
	making := s.tree + ".making"
	if err := removeTree(making); err != nil {
		return err
	}
	args := []string{"debootstrap", "--variant=minbase", "--include=ca-certificates", s.suite, making, s.mirror}
	if err := explain(args, apart(ctx, log, args...)); err != nil {
		return errors.Join(err, removeTree(making))
	}
	return durable.Install(making, s.tree)
}

// removeTree removes a tree, unless something is mounted there.
func removeTree(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1]+"/", dir+"/") {
			return diag.Build.Hint(fmt.Errorf("%s is mounted, so %s is not removed", fields[1], dir),
				"unmount it, then build again")
		}
	}
	return os.RemoveAll(dir)
}

// apart runs a program that mounts file systems and starts processes, in its own mount and process namespaces. When it
// is stopped, its mounts and processes are gone, so that its tree can be removed safely.
func apart(ctx context.Context, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
