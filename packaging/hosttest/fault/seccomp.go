package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of linux/seccomp.h that are missing in package unix.
const (
	userNotify = 0x7fc00000 // SECCOMP_RET_USER_NOTIF
	allow      = 0x7fff0000 // SECCOMP_RET_ALLOW

	newListener  = 1 << 3 // SECCOMP_FILTER_FLAG_NEW_LISTENER
	waitKillable = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV: signals do not restart a waiting call

	notifyReceive = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	notifySend    = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
	notifyProceed = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
)

// Main executes the watched program in place of the test's own binary, if the binary was started for this purpose. It
// must be the first call of a TestMain.
func Main() {
	if rules := os.Getenv(denied); rules != "" {
		runtime.LockOSThread() // the filter is for this thread, which executes the program
		fmt.Fprintln(os.Stderr, "denying system calls:", deny(rules))
		os.Exit(125)
	}
	names := os.Getenv(environment)
	if names == "" {
		return
	}
	runtime.LockOSThread() // the filter is for this thread, which executes the program
	if err := become(os.Getenv(target), strings.Split(names, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "watching system calls:", err)
		os.Exit(125)
	}
}

func become(program string, names []string) error {
	listener, err := filter(names)
	if err != nil {
		return err
	}
	const to = 3 // the first of ExtraFiles
	if err := unix.Sendmsg(to, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return err
	}
	if err := errors.Join(unix.Close(listener), unix.Close(to)); err != nil {
		return err
	}
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, environment+"=") && !strings.HasPrefix(e, target+"=") {
			env = append(env, e)
		}
	}
	return syscall.Exec(program, os.Args, env)
}

// filter installs a filter that suspends the calls, and returns the descriptor with which they are answered.
func filter(names []string) (int, error) {
	var wanted []call
	table := calls()
	for _, name := range names {
		wanted = append(wanted, table[name])
	}
	code := assemble(wanted)
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return 0, err
		}
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, newListener|waitKillable,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, fmt.Errorf("seccomp: %w", errno)
	}
	return int(fd), nil
}

// assemble returns the program of the filter: a wanted call, with the required bits, is reported, and every other call
// proceeds.
func assemble(wanted []call) []unix.SockFilter {
	const number, argument = 0, 16 // offsets in struct seccomp_data
	load := func(offset int) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: uint32(offset)}
	}
	answer := func(what uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what} }
	var code []unix.SockFilter
	for _, c := range wanted {
		body := []unix.SockFilter{answer(userNotify)}
		if c.flag >= 0 {
			body = []unix.SockFilter{
				load(argument + 8*c.flag), // its low half, on machines that begin with it
				{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: c.mask, Jt: 1},
				answer(allow), answer(userNotify),
			}
		}
		code = append(code, load(number), unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(c.number),
			Jf: uint8(len(body))})
		code = append(code, body...)
	}
	return append(code, answer(allow))
}

// supervisor responds to the suspended calls.
type supervisor struct {
	Watch
	listener int
	pid      int
	seen     []Call
}

// notice is struct seccomp_notif.
type notice struct {
	id         uint64
	pid        uint32
	flags      uint32
	number     int32
	arch       uint32
	instructed uint64
	args       [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// serve responds until the program has ended, or no process has the filter any more.
func (s *supervisor) serve(ended <-chan struct{}) error {
	for {
		fds := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		switch {
		case n > 0 && fds[0].Revents&unix.POLLIN != 0:
			if err := s.next(); err != nil {
				return err
			}
		case n > 0:
			return nil // all processes with the filter have ended
		default:
			select {
			case <-ended:
				return nil
			default:
			}
		}
	}
}

func (s *supervisor) next() error {
	var n notice
	if err := s.ioctl(notifyReceive, unsafe.Pointer(&n)); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
			return nil // the process with the call has ended
		}
		return err
	}
	a := answer{id: n.id, flags: notifyProceed}
	if s.own(n) && s.counts(n) {
		switch reached := len(s.seen); {
		case s.At == 0 || reached < s.At || reached > s.At && !s.Onward:
		case s.Errno == 0:
			return unix.Kill(s.pid, unix.SIGKILL)
		default:
			a.flags, a.errno = 0, -int32(s.Errno)
		}
	}
	if err := s.ioctl(notifySend, unsafe.Pointer(&a)); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// own reports whether a call was made by the program itself, and not by a child process.
func (s *supervisor) own(n notice) bool {
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(s.pid), "task", strconv.Itoa(int(n.pid))))
	return err == nil
}

// counts records a call, if its file is watched.
func (s *supervisor) counts(n notice) bool {
	table := calls()
	for _, name := range s.Calls {
		c := table[name]
		if c.number != int(n.number) {
			continue
		}
		path := c.file(s.pid, n.args)
		if path == "" || s.Below != "" && path != s.Below && !strings.HasPrefix(path, s.Below+"/") ||
			!strings.HasSuffix(path, s.Like) {
			return false
		}
		seen := Call{Name: name, Path: path, From: c.from(s.pid, n.args)}
		s.seen = append(s.seen, seen)
		if s.Each != nil {
			s.Each(seen)
		}
		return true
	}
	return false
}

func (s *supervisor) ioctl(request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
