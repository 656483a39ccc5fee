package process

import (
	"math"

	"golang.org/x/sys/unix"
)

// firstExtra is the first descriptor after the standard streams.
const firstExtra = 3

// KeepFiles makes sure that no program inherits the files that were open when this one was started: whoever started it may
// have one open that another user must not read. A program calls it before anything else. The descriptors stay open for
// this process, and one that is passed on by name, as in [exec.Cmd.ExtraFiles], is passed on all the same.
func KeepFiles() {
	if unix.CloseRange(firstExtra, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil {
		keepEach()
	}
}

// keepEach is KeepFiles for kernels before Linux 5.11, and where a filter refuses close_range.
func keepEach() {
	limit := unix.Rlimit{Cur: most}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // most is enough for any shell
	for fd := firstExtra; fd < int(min(limit.Cur, most)); fd++ {
		unix.CloseOnExec(fd)
	}
}

// most is how many descriptors keepEach looks at.
const most = 1 << 16
