package walk

import (
	"os"

	"golang.org/x/sys/unix"
)

// noLimit represents the free space of a filesystem without a size, or without a limit of files. Sums of two do not
// overflow.
const noLimit = 1 << 61

// Space is the free space of a filesystem.
type Space struct {
	Bytes      int64 // including those reserved for root
	Unreserved int64 // bytes that every user can write
	Files      int64 // inodes
	ReadOnly   bool
}

// SpaceAt returns the free space of the filesystem of a path.
func SpaceAt(path string) (Space, error) {
	var st unix.Statfs_t
	if err := Retry(func() error { return unix.Statfs(path, &st) }); err != nil {
		return Space{}, pathError("statfs", path, err)
	}
	return spaceOf(&st), nil
}

// SpaceFor returns the free space of the filesystem of an open file.
func SpaceFor(file *os.File) (Space, error) {
	var st unix.Statfs_t
	// Before Linux 3.6, fstatfs(2) failed for descriptors opened with O_PATH.
	if err := Retry(func() error { return unix.Fstatfs(int(file.Fd()), &st) }); err != nil {
		return Space{}, pathError("statfs", file.Name(), err)
	}
	return spaceOf(&st), nil
}

// For returns the bytes that a user can write.
func (s Space) For(uid int) int64 {
	if uid == 0 {
		return s.Bytes
	}
	return s.Unreserved
}

// spaceOf counts like df(1): in blocks of f_frsize. f_bsize, the best size for transfers, may be larger.
func spaceOf(st *unix.Statfs_t) Space {
	s := Space{Bytes: noLimit, Unreserved: noLimit, Files: noLimit, ReadOnly: st.Flags&unix.ST_RDONLY != 0}
	if st.Blocks > 0 {
		s.Bytes, s.Unreserved = int64(st.Bfree)*st.Frsize, int64(st.Bavail)*st.Frsize
	}
	if st.Files > 0 {
		s.Files = int64(st.Ffree)
	}
	return s
}
