package process

import (
	"strings"
	"syscall"
)

// Printed reports whether the output of a program names a system call error in the words of a C library. It knows the
// errors by which a host fails any program: a full, failing or read-only disk, the lack of files or memory, and a
// network without routes or name servers; and EACCES, which a host is to blame for where it
// starts no programs. Other errors are never found.
func Printed(output string, kind syscall.Errno) bool {
	output = strings.ToLower(output)
	for _, words := range wordsOf(kind) {
		if strings.Contains(output, words) {
			return true
		}
	}
	return false
}

// wordsOf are the texts of strerror(3) in glibc and musl, and those that dash and busybox print, in lower case.
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
