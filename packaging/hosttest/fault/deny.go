package fault

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied is the variable with the calls that Main has to deny: "NUMBER=ERRNO,...".
const denied = "CORPUS_FAULT_DENIED"

// Deny returns the environment in which a test's own binary, whose TestMain calls Main, becomes the program at path,
// with its arguments, on a system where a call always fails: as on a kernel without the call (ENOSYS) or with a
// container's filter that denies it (EPERM). The denial also applies to child processes of the program.
func Deny(path string, number int, errno syscall.Errno) []string {
	return []string{fmt.Sprintf("%s=%d=%d", denied, number, int(errno)), target + "=" + path}
}

// deny installs the filter and executes the program.
func deny(rules string) error {
	var code []unix.SockFilter
	for rule := range strings.SplitSeq(rules, ",") {
		number, errno, _ := strings.Cut(rule, "=")
		n, err := strconv.Atoi(number)
		e, err2 := strconv.Atoi(errno)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		code = append(code, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(n), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(e)})
	}
	code = append(code, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: allow})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	path := os.Getenv(target)
	return errors.Join(os.Unsetenv(denied), os.Unsetenv(target), syscall.Exec(path, os.Args, os.Environ()))
}
