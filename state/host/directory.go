package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// checkPaths returns an error if another user can redirect one of the paths of a command while the command runs.
func (c *commands) checkPaths(ctx context.Context, command Command) error {
	if command.Following || ctx.Value(followingKey{}) != nil || command.As != nil || c.files == nil {
		return nil
	}
	for _, p := range command.Paths {
		if err := c.files.root.ByName(p); err != nil {
			return err
		}
	}
	return nil
}

// start starts a command in its directory.
func (c *commands) start(cmd *exec.Cmd, command Command) error {
	if command.Dir == "" || command.Dir == "/" || c.files == nil {
		cmd.Dir = "/"
		return process.Start(cmd)
	}
	files := c.files
	if command.Following {
		files = files.following()
	}
	// A process changes to its directory with the permissions of its user, which may not suffice.
	if command.As == nil && (command.Following || c.files.root.Fixed(command.Dir)) {
		cmd.Dir = command.Dir
		return process.Start(cmd)
	}
	return startIn(cmd, func() error { return files.enter(command.Dir, command.As) })
}

// startIn starts a command in the directory that enter makes the working directory of the thread, so that no link can
// redirect it meanwhile. A process inherits the working directory of the thread that starts it, so startIn uses a
// thread with its own working directory, which ends afterwards. Since a thread is expensive, start calls it only for
// directories that a user can replace, and for commands of other users.
func startIn(cmd *exec.Cmd, enter func() error) error {
	return inThread(func() error {
		if err := enter(); err != nil {
			return err
		}
		cmd.Dir = "" // inherited from the thread; a change to "." would require the permission to search it
		return process.Start(cmd)
	})
}

// inThread runs a function in a thread that has its own working directory. The thread ends after the function.
func inThread(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it is not unlocked, so the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = do()
			_ = unix.Chdir("/") // the main thread does not end; it must not keep the directory in use
		}
		done <- err
	}()
	return <-done
}

// enter changes the working directory of the thread. It uses the permissions of the user as whom the command runs, and
// follows links that this user controls, as a process of the user would. A directory that only the agent may enter is
// entered with the agent's permissions and without following links of users, since the author of the state chose it.
func (t *tree) enter(p string, as *Credential) error {
	root := t.root
	if as != nil {
		root = root.As(as.UID)
	}
	err := withRights(as, func() error { return changeTo(root, p) })
	if as != nil && errors.Is(err, fs.ErrPermission) {
		if own := changeTo(t.root, p); own == nil {
			return nil
		}
	}
	return pathError("chdir", p, err)
}

func changeTo(root *walk.Root, p string) error {
	fd, err := root.Openat(p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchdir(fd)
}

// withRights runs a function with the file permissions of a user. It changes those of the thread, which the caller must
// have locked (inThread).
func withRights(as *Credential, do func() error) error {
	if as == nil || os.Geteuid() != 0 {
		return do()
	}
	groups, err := unix.Getgroups()
	if err != nil {
		return err
	}
	before := make([]uint32, 0, len(groups))
	for _, g := range groups {
		before = append(before, uint32(g))
	}
	if err := setGroups(as.Groups); err != nil {
		return err
	}
	gid, _ := unix.SetfsgidRetGid(int(as.GID)) // these two calls report no failure: they return the former ID
	uid, _ := unix.SetfsuidRetUid(int(as.UID))
	if now, _ := unix.SetfsuidRetUid(-1); now == int(as.UID) {
		err = do()
	} else {
		err = unix.EPERM
	}
	_, _ = unix.SetfsuidRetUid(uid)
	_, _ = unix.SetfsgidRetGid(gid)
	return errors.Join(err, setGroups(before))
}

// setGroups sets the supplementary groups of the thread; package unix would set those of all threads.
func setGroups(groups []uint32) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)),
		uintptr(unsafe.Pointer(unsafe.SliceData(groups))), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Enterable returns an error if a command of a user, "" for the agent's own, cannot start in a directory.
func (h *Host) Enterable(dir, runAs string) error {
	err := h.enterable(dir, runAs)
	var refused *walk.UnsafeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return Gone(dir, diag.Prerequisite.Hint(fmt.Errorf("the working directory %s does not exist", dir),
			"create it in a state that this one requires"))
	case errors.Is(err, ErrNotDir):
		return fmt.Errorf("the working directory cannot be entered: %w", cmp.Or(h.Obstructed(dir),
			diag.Argument.Hint(fmt.Errorf("%s is not a directory", dir), "correct cwd")))
	case errors.As(err, &refused):
		return fmt.Errorf("the working directory is not entered: %w", err)
	case runAs != "":
		return diag.Rights.Hint(fmt.Errorf("user %s cannot enter the working directory: %w", runAs, err),
			"look at the modes of the directories on the way: namei -l %s", dir)
	}
	return fmt.Errorf("the working directory cannot be entered: %w", err)
}

func (h *Host) enterable(dir, runAs string) error {
	t, ok := h.Files.(*tree)
	if runAs == "" || !ok {
		return h.statDir(dir)
	}
	_, as, err := h.become(runAs)
	if err != nil {
		return nil // the command itself fails and reports why
	}
	if as == nil {
		return h.statDir(dir)
	}
	return inThread(func() error { return t.enter(dir, as) })
}

func (h *Host) statDir(dir string) error {
	info, err := h.Files.Stat(dir)
	if err == nil && !info.IsDir() {
		return ErrNotDir
	}
	return err
}
