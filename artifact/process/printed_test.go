package process_test

import (
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

func TestPrintedRecognizesMessagesOfTheCLibrary(t *testing.T) {
	for output, want := range map[string]syscall.Errno{
		"dd: error writing 'x': No space left on device": syscall.ENOSPC,
		"sh: write error: Disk quota exceeded":           syscall.EDQUOT,
		"x: 1: echo: echo: I/O error":                    syscall.EIO,
		"cat: x: Input/output error":                     syscall.EIO,
		"rm: cannot remove 'x': Read-only file system":   syscall.EROFS,
		"open x: too many open files":                    syscall.EMFILE,
		"bash: fork: Cannot allocate memory":             syscall.ENOMEM,
		"sh: 1: /srv/x: Permission denied":               syscall.EACCES,
		"curl: (7) connect: Network is unreachable":      syscall.ENETUNREACH,
		"ping: x: Temporary failure in name resolution":  syscall.ENETUNREACH,
		"no such file or directory":                      syscall.ENOENT,
	} {
		for _, kind := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE,
			syscall.ENOMEM, syscall.ENETUNREACH, syscall.EACCES, syscall.ENOENT} {
			if got := process.Printed(output, kind); got != (kind == want && kind != syscall.ENOENT) {
				t.Errorf("%q names %q: %t", output, kind, got)
			}
		}
	}
}
