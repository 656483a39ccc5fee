package host

import (
	"io/fs"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// start starts a command in its directory.
func (c *commands) start(cmd *exec.Cmd, command Command) error {
	if command.Dir == "" || command.Dir == "/" || c.files == nil {
		cmd.Dir = "/"
		return cmd.Start()
	}
	if command.Following || c.files.root.Fixed(command.Dir) {
		cmd.Dir = command.Dir
		return cmd.Start()
	}
	dir, err := c.files.openat(command.Dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return pathError("chdir", command.Dir, err)
	}
	defer unix.Close(dir)
	return startIn(cmd, dir, command.Dir)
}

// startIn starts a command in an open directory, which no link that is exchanged meanwhile replaces by another. It costs
// a thread, so start enters a directory that no user can exchange by its name instead. A process takes over the
// directory of the thread that starts it; so a thread gets one of its own, and ends with it. A command of another user
// has to be able to enter the directory by itself.
func startIn(cmd *exec.Cmd, dir int, name string) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Fchdir(dir)
		}
		if err != nil {
			started <- &fs.PathError{Op: "chdir", Path: name, Err: err}
			return
		}
		cmd.Dir = "."
		err = cmd.Start()
		_ = unix.Chdir("/") // the first thread of a program stays; it must not keep the directory in use
		started <- err
	}()
	return <-started
}
