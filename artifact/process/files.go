package process

import (
	"math"

	"golang.org/x/sys/unix"
)

// firstExtra is the first descriptor after the standard streams.
const firstExtra = 3

// KeepFiles marks the files that were open when this process was started as close-on-exec, so that no program inherits
// them: the parent may have opened one that another user must not read. A program calls it before anything else. The
// descriptors stay open in this process, and files in [exec.Cmd.ExtraFiles] are still passed on.
func KeepFiles() {
	if unix.CloseRange(firstExtra, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil {
		keepEach()
	}
}

// keepEach is KeepFiles for kernels before Linux 5.11, and for seccomp filters that refuse close_range.
func keepEach() {
	limit := unix.Rlimit{Cur: most}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // if it fails, limit.Cur is most
	for fd := firstExtra; fd < int(min(limit.Cur, most)); fd++ {
		unix.CloseOnExec(fd)
	}
}

// most is the maximum number of descriptors that keepEach marks.
const most = 1 << 16
