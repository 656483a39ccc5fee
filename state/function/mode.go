package function

import (
	"fmt"
	"io/fs"
)

// RawMode returns a mode in the kernel's form, including the file type.
func RawMode(mode fs.FileMode) uint32 {
	raw := rawPerm(mode)
	switch mode.Type() {
	case fs.ModeDir:
		return raw | 0o040000
	case fs.ModeSymlink:
		return raw | 0o120000
	case fs.ModeNamedPipe:
		return raw | 0o010000
	case fs.ModeSocket:
		return raw | 0o140000
	case fs.ModeDevice:
		return raw | 0o060000
	case fs.ModeDevice | fs.ModeCharDevice:
		return raw | 0o020000
	}
	return raw | 0o100000
}

// rawPerm returns the part of a mode in the kernel's form that chmod sets.
func rawPerm(mode fs.FileMode) uint32 {
	raw := uint32(mode.Perm())
	for _, bit := range []struct {
		raw  uint32
		mode fs.FileMode
	}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}} {
		if mode&bit.mode != 0 {
			raw |= bit.raw
		}
	}
	return raw
}

// ModeText formats the permissions of a mode as Salt does: four octal digits.
func ModeText(mode fs.FileMode) string { return fmt.Sprintf("%04o", RawMode(mode)&0o7777) }
