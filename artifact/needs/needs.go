// Package needs determines the requirements of a release: an architecture, a C library, interpreters.
//
// The builder of a release finds the needs by reading its files, and writes them into the release. A host checks them
// before it changes any link: refusing a release that cannot start here is better than rolling it back.
package needs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"golang.org/x/sys/unix"
)

// Needs are the requirements of a release. The zero value requires nothing.
type Needs struct {
	// Arch is the architecture as Go names it, such as amd64; "" for any.
	Arch string `json:"arch,omitempty"`
	// Glibc is the oldest sufficient version of the GNU C library, such as 2.36; "" if it is not used.
	Glibc string `json:"glibc,omitempty"`
	// Programs are the interpreters and loaders that must exist, by absolute path.
	Programs []string `json:"programs,omitempty"`
	// Interpreters are the programs that first lines of executable scripts name, with one such script each: an absolute
	// path, or the name of a program on PATH. A host is not refused for them, since its states may install them.
	Interpreters map[string]string `json:"interpreters,omitempty"`
}

// machines maps the architectures of ELF to those of Go.
func machines() map[uint16]string {
	return map[uint16]string{
		amd64: "amd64", arm64: "arm64", i386: "386", arm: "arm",
		riscv64: "riscv64", ppc64: "ppc64le", s390x: "s390x",
	}
}

// glibcPrefix starts the names of the GNU C library's symbol versions.
const glibcPrefix = "GLIBC_"

// Of determines the needs of a release by reading all of its files. Programs for two architectures in one release are
// a Mixed error, since no host has both.
func Of(release fs.FS) (Needs, error) {
	var names []string
	err := fs.WalkDir(release, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return Needs{}, err
	}
	return OfFiles(release, names)
}

// OfFiles is Of for some files of a release.
func OfFiles(release fs.FS, names []string) (n Needs, err error) {
	for _, name := range names {
		if err = n.look(release, name); err != nil {
			break
		}
	}
	slices.Sort(n.Programs)
	n.Programs = slices.Compact(n.Programs)
	return n, err
}

// Mixed is the error of a release with programs for two architectures.
type Mixed struct{ name, arch, others string }

func (m *Mixed) Error() string {
	return fmt.Sprintf("%s is for %s, and others of the release are for %s", m.name, m.arch, m.others)
}

func (n *Needs) look(release fs.FS, name string) error {
	f, err := release.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, ok := f.(interface {
		ReadAt(p []byte, off int64) (int, error)
	})
	if !ok {
		return nil
	}
	var start [len(magic)]byte
	if _, err := r.ReadAt(start[:], 0); err != nil || string(start[:]) != magic {
		return nil //nolint:nilerr // too short for a program
	}
	program, err := openProgram(r)
	if err != nil {
		return nil //nolint:nilerr // a damaged program has no needs
	}
	return n.add(name, program)
}

func (n *Needs) add(name string, program *program) error {
	if program.kind != executable && program.kind != shared {
		return nil // an object file cannot be executed
	}
	arch := machines()[program.machine]
	if n.Arch != "" && arch != n.Arch {
		return &Mixed{name, arch, n.Arch}
	}
	n.Arch = arch
	if loader := program.loader(); loader != "" {
		n.Programs = append(n.Programs, loader)
	}
	versions, err := program.versions(neededTag, neededCountTag)
	if err != nil {
		return nil //nolint:nilerr // a static program needs no library
	}
	if v := newest(versions); older(n.Glibc, v) {
		n.Glibc = v
	}
	return nil
}

// newest returns the newest version of the GNU C library in a list, or "".
func newest(versions []string) string {
	newest := ""
	for _, v := range versions {
		if version, ok := strings.CutPrefix(v, glibcPrefix); ok && older(newest, version) {
			newest = version
		}
	}
	return newest
}

// older reports whether a version is less than another, compared number by number.
func older(a, b string) bool {
	return slices.Compare(numbers(a), numbers(b)) < 0
}

func numbers(version string) []int {
	var list []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return list
		}
		list = append(list, n)
	}
	return list
}

// Host is the host that needs are compared with.
type Host struct {
	Arch string // as Go names it
	Root fs.FS  // the host's file system
}

// Missing returns a sentence for each requirement that a host does not meet; nil if the release can run there. It
// returns an error if the host's files cannot be read.
func (n Needs) Missing(h Host) (missing []string, err error) {
	if n.Arch != "" && n.Arch != h.Arch {
		missing = append(missing, fmt.Sprintf("it is built for %s, and this host is %s", n.Arch, h.Arch))
	}
	for _, program := range n.Programs {
		_, err := fs.Stat(h.Root, strings.TrimPrefix(program, "/"))
		found, err := walk.Found(err)
		if err != nil {
			return nil, err
		}
		if !found {
			missing = append(missing, program+" does not exist")
		}
	}
	if n.Glibc == "" {
		return missing, nil
	}
	has, err := glibcOf(h.Root)
	if err != nil {
		return nil, err
	}
	if has == "" {
		missing = append(missing, "it needs the GNU C library, and there is none")
	} else if older(has, n.Glibc) {
		missing = append(missing, fmt.Sprintf("it needs the GNU C library %s, and here is %s", n.Glibc, has))
	}
	return missing, nil
}

// glibcOf returns the version of the C library of a system tree, or "".
func glibcOf(root fs.FS) (newest string, err error) {
	dirs := []string{"lib64", "lib", "usr/lib"}
	for _, above := range []string{"lib", "usr/lib"} { // also directories for one of several architectures
		entries, err := fs.ReadDir(root, above)
		if _, err := walk.Found(err); err != nil {
			return "", err
		}
		for _, e := range entries {
			dirs = append(dirs, path.Join(above, e.Name()))
		}
	}
	for _, dir := range dirs {
		version, err := definedBy(root, path.Join(dir, "libc.so.6"))
		if err != nil {
			return "", err
		}
		if older(newest, version) {
			newest = version
		}
	}
	return newest, nil
}

// definedBy returns the newest version for which a C library defines symbols; "" if the file is missing or no library.
func definedBy(root fs.FS, name string) (version string, err error) {
	f, err := root.Open(name)
	if found, err := walk.Found(err); !found {
		if errors.Is(err, unix.ENOTDIR) { // its parent is a file
			err = nil
		}
		return "", err
	}
	defer f.Close()
	r, ok := f.(interface {
		ReadAt(p []byte, off int64) (int, error)
	})
	if !ok {
		return "", nil
	}
	library, err := openProgram(r)
	if err != nil {
		return "", nil //nolint:nilerr // not a library
	}
	versions, err := library.versions(definedTag, definedCountTag)
	if err != nil {
		return "", nil //nolint:nilerr // not a library
	}
	return newest(versions), nil
}
