package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Modes of unpacked names. Of the mode in an archive, only the executable bits of files are kept.
const (
	fileMode       = 0o444
	executableMode = 0o555
	directoryMode  = 0o755
	setgid         = 0o2000 // directories inherit it from the parent directory
)

// Private are the directories of a release that hold a host's secrets. They have PrivateMode.
func Private() []string { return []string{"pillar", "salt/config/pillar"} }

// PrivateMode is the mode of private directories.
const PrivateMode = 0o700

// ClosePrivate gives the private directories of a tree their mode.
func ClosePrivate(tree *os.Root) error {
	var errs []error
	for _, name := range Private() {
		if info, err := tree.Lstat(name); err == nil && info.IsDir() {
			errs = append(errs, tree.Chmod(name, PrivateMode))
		}
	}
	return errors.Join(errs...)
}

// CloseLinked sets PrivateMode on the directories of a tree to which its private names are links. It is for a tree that
// has no list with modes. A link to the tree itself is an error: users of its files could not reach them.
func CloseLinked(tree *os.Root) error {
	top, err := tree.Stat(".")
	errs := []error{err}
	for _, name := range Private() {
		info, err := tree.Stat(name)
		switch {
		case err != nil || !info.IsDir():
		case os.SameFile(info, top):
			errs = append(errs, fmt.Errorf("%s is a link to the whole tree, which other users may read: make it a directory",
				name))
		default:
			errs = append(errs, tree.Chmod(name, PrivateMode))
		}
	}
	return errors.Join(errs...)
}

// modeFits reports whether a file has the mode that it was unpacked with. Code that the recipe declares writable may
// have its owner's write bit.
func (a *audit) modeFits(e Entry, name string, mode uint32) bool {
	if a.anyMode {
		return mode&0o7000 == 0 && (mode&0o111 != 0) == (e.Kind == Executable)
	}
	return a.modeOf(e, name).Fits(mode)
}

// octal returns a mode as a number for chmod(1).
func octal(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for bit, posix := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&bit != 0 {
			bits |= posix
		}
	}
	return bits
}

// plain returns the kind that an entry has on disk.
func (k Kind) plain() Kind {
	if k == Hardlink || k == Executable {
		return File
	}
	return k
}

func kindOf(info fs.FileInfo) Kind {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return File
	case mode.IsDir():
		return Directory
	case mode&fs.ModeSymlink != 0:
		return Symlink
	}
	return 0
}
