package process

import (
	"strings"
	"syscall"
)

// Printed reports whether the output of a program contains the C library's message for a system call error. It
// recognizes errors that mean that the host is at fault: a full, failing or read-only disk, exhausted files or memory,
// a network without routes or name servers; and EACCES, for hosts that cannot start any program. Other errors are never
// recognized.
func Printed(output string, kind syscall.Errno) bool {
	output = strings.ToLower(output)
	for _, words := range wordsOf(kind) {
		if strings.Contains(output, words) {
			return true
		}
	}
	return false
}

// PrintedByHost returns the error of the host whose message is in the output of a program or in the text of a Python
// exception, or 0 for none. It ignores EACCES and ENETUNREACH, which a mistake of a release may cause.
func PrintedByHost(output string) syscall.Errno {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE,
		syscall.ENOMEM} {
		if Printed(output, errno) {
			return errno
		}
	}
	return 0
}

// wordsOf returns the messages of strerror(3) in glibc and musl, and those of dash and busybox, in lower case.
func wordsOf(kind syscall.Errno) []string {
	switch kind {
	case syscall.ENOSPC:
		return []string{"no space left on device"}
	case syscall.EDQUOT:
		return []string{"disk quota exceeded"}
	case syscall.EIO:
		return []string{"input/output error", "i/o error"}
	case syscall.EROFS:
		return []string{"read-only file system", "read-only filesystem"}
	case syscall.EMFILE:
		return []string{"too many open files", "no file descriptors available"}
	case syscall.EACCES:
		return []string{"permission denied"}
	case syscall.ENETUNREACH:
		return []string{"network is unreachable", "temporary failure in name resolution", "temporary failure resolving"}
	case syscall.ENOMEM:
		return []string{"cannot allocate memory"}
	}
	return nil
}
