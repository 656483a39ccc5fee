package process

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// inheritable opens a file that child processes would inherit.
func inheritable(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open(filepath.Join(t.TempDir(), "f"), unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func TestFilesOfTheCallerAreNotPassedOn(t *testing.T) {
	for name, keep := range map[string]func(){"at once": KeepFiles, "one by one": keepEach} {
		t.Run(name, func(t *testing.T) {
			fd := inheritable(t)
			keep()
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("the descriptor has flags %d, %v", flags, err)
			}
		})
	}
}
