package fault

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// call describes a system call: its number, and the arguments that identify its file.
type call struct {
	number int
	dir    int // argument: descriptor of the directory that path starts from; -1 for none
	path   int // argument: the path; -1 for a call about a descriptor
	fd     int // argument: the descriptor; -1 for a call about a path
	source int // argument: descriptor of the directory that the path before starts from; -1 for none
	flag   int // argument whose bits must have some of mask; -1 for none
	mask   uint32
	inRoot bool // an absolute path begins at dir
}

// calls returns the calls with which Go programs change a disk.
func calls() map[string]call {
	at := func(number, dir int) call {
		return call{number: number, dir: dir, path: dir + 1, fd: -1, source: -1, flag: -1}
	}
	to := func(number int) call { return call{number: number, dir: 2, path: 3, fd: -1, source: 0, flag: -1} }
	on := func(number, fd int) call {
		return call{number: number, dir: -1, path: -1, fd: fd, source: -1, flag: -1}
	}
	inRoot := at(unix.SYS_OPENAT2, 0)
	inRoot.inRoot = true
	create := at(unix.SYS_OPENAT, 0)
	create.flag, create.mask = 2, unix.O_CREAT
	return map[string]call{
		"renameat": to(unix.SYS_RENAMEAT), "renameat2": to(unix.SYS_RENAMEAT2), "linkat": to(unix.SYS_LINKAT),
		"symlinkat": at(unix.SYS_SYMLINKAT, 1), "unlinkat": at(unix.SYS_UNLINKAT, 0), "mkdirat": at(unix.SYS_MKDIRAT, 0),
		"fchmodat": at(unix.SYS_FCHMODAT, 0), "fchownat": at(unix.SYS_FCHOWNAT, 0), "utimensat": at(unix.SYS_UTIMENSAT, 0),
		"create": create,
		"fsync":  on(unix.SYS_FSYNC, 0), "fdatasync": on(unix.SYS_FDATASYNC, 0), "syncfs": on(unix.SYS_SYNCFS, 0),
		"write": on(unix.SYS_WRITE, 0), "pwrite64": on(unix.SYS_PWRITE64, 0),
		"copy_file_range": on(unix.SYS_COPY_FILE_RANGE, 2),
		"openat":          at(unix.SYS_OPENAT, 0), "openat2": inRoot, "newfstatat": at(statAt, 0),
		"readlinkat": at(unix.SYS_READLINKAT, 0),
		"read":       on(unix.SYS_READ, 0), "getdents64": on(unix.SYS_GETDENTS64, 0),
		"ftruncate": on(unix.SYS_FTRUNCATE, 0), "fallocate": on(unix.SYS_FALLOCATE, 0), "fchmod": on(unix.SYS_FCHMOD, 0),
		"fchown": on(unix.SYS_FCHOWN, 0),
	}
}

// Names returns the names of the calls that change the disk and can be watched. "create" is an openat(2) that may make
// a file.
func Names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(calls())), func(name string) bool {
		return slices.Contains(Reading(), name)
	})
}

// Reading returns the names of calls that read the disk. They can be watched as well.
func Reading() []string {
	return []string{"openat", "openat2", "newfstatat", "readlinkat", "read", "getdents64"}
}

// Naming returns the names of the calls that add or remove a name, or sync content. If a program is killed at one of
// them, its work may be left incomplete.
func Naming() []string {
	return []string{"renameat", "renameat2", "linkat", "symlinkat", "unlinkat", "mkdirat", "fsync", "fdatasync", "syncfs"}
}

// Needing returns the names of the calls that fail on a full or broken disk.
func Needing() []string {
	return []string{"create", "mkdirat", "renameat", "renameat2", "symlinkat", "linkat", "write", "pwrite64",
		"copy_file_range", "fallocate", "fsync", "fdatasync", "syncfs"}
}

// file returns the path of the file of a call; "" if the call is not about a file.
func (c call) file(pid int, args [6]uint64) string {
	if c.fd >= 0 {
		return descriptor(pid, int32(args[c.fd]))
	}
	return c.named(pid, int32(args[c.dir]), args[c.path])
}

// from returns the path from which a call renames or links; "" for other calls.
func (c call) from(pid int, args [6]uint64) string {
	if c.source < 0 {
		return ""
	}
	path := c.named(pid, int32(args[c.source]), args[c.source+1])
	if fd, of := strings.CutPrefix(path, "/proc/self/fd/"); of {
		path, _ = os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + fd)
	}
	return path
}

// named returns the path of a name, which a call passes by its address, in an open directory.
func (c call) named(pid int, dir int32, address uint64) string {
	proc := "/proc/" + strconv.Itoa(pid)
	name := text(proc, address)
	if filepath.IsAbs(name) && !c.inRoot {
		return filepath.Clean(name)
	}
	if dir != unix.AT_FDCWD {
		return filepath.Join(descriptor(pid, dir), name)
	}
	cwd, err := os.Readlink(proc + "/cwd")
	if err != nil {
		return ""
	}
	return filepath.Join(cwd, name)
}

// descriptor returns the path of an open file; "" for a pipe or a socket.
func descriptor(pid int, fd int32) string {
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(int(fd)))
	if err != nil || !strings.HasPrefix(path, "/") {
		return ""
	}
	return path
}

// text reads a string out of a process.
func text(proc string, address uint64) string {
	f, err := os.Open(proc + "/mem")
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, syscall.PathMax)
	n, _ := f.ReadAt(buf, int64(address)) // up to the first unmapped page
	name, _, _ := strings.Cut(string(buf[:n]), "\x00")
	return name
}
