// Package self checks and restores the agent itself: the program, the units and the configuration with which the next
// run on this host starts.
//
// Only a later run repairs a host. A release that replaces the agent with a program that does not work, or breaks its
// unit, its timer or its configuration, would therefore make the host unreachable permanently. So a run records these
// files before it changes anything. If it has changed them, it tests the agent that the host would start next, while
// the old one still runs and can roll back.
package self

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Name is the name of the program's file.
const Name = "corpus-agent"

// Self is the agent that this host starts next.
type Self struct {
	Executable string   // path of the running program
	Image      string   // file with the running program's bytes; /proc/self/exe by default
	Files      []string // configuration, environment, and other files that a run requires
	UnitDirs   []string // where the init system reads unit files
	Env        []string // of the programs that are tried
	Flags      []string // of every command that is tried

	// Systemctl queries systemd; nil if systemd does not run this system.
	Systemctl func(ctx context.Context, args ...string) (string, error)

	// Limit is how long all tests of one program may take; a minute by default.
	Limit time.Duration
}

// Limit is the default of Self.Limit.
const Limit = time.Minute

// Snapshot is the state of the agent's files at one moment, by path.
type Snapshot map[string]file

// file is the state of one file. It has the content of small files, which are all except the program.
type file struct {
	stamp
	content []byte // nil if it is not kept, or the file does not exist
}

// smallest is the maximum size of a file whose content a snapshot keeps.
const smallest = 64 << 10

// stamp identifies the content of a file without reading it. The zero stamp is that of a missing file.
type stamp struct {
	dev, ino          uint64
	mode              uint32
	size              int64
	modified, changed syscall.Timespec
	target            string // of a link
}

// Look returns a snapshot of the present files.
func (s *Self) Look() Snapshot {
	all := Snapshot{}
	for _, name := range append([]string{s.Executable}, s.Files...) {
		all[name] = fileOf(name)
	}
	for _, dir := range s.UnitDirs {
		for _, name := range unitFiles(dir) {
			all[name] = fileOf(name)
		}
	}
	return all
}

func fileOf(name string) file {
	f := file{stamp: stampOf(name)}
	if f.target == "" && f.mode&syscall.S_IFMT == syscall.S_IFREG && f.size <= smallest {
		f.content, _ = os.ReadFile(name) // the content of a file that cannot be read is not kept
	}
	return f
}

// Changed returns the files that have changed since the snapshot, sorted.
func (s *Self) Changed(before Snapshot) []string {
	now := s.Look()
	var changed []string
	for name, is := range now {
		if is.stamp != before[name].stamp {
			changed = append(changed, name)
		}
	}
	for name, was := range before {
		if _, known := now[name]; !known && was.stamp != stampOf(name) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

// IsUnit reports whether a file is one of those that systemd reads.
func (s *Self) IsUnit(name string) bool {
	return slices.ContainsFunc(s.UnitDirs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}

func stampOf(name string) stamp {
	var st syscall.Stat_t
	var out stamp
	out.target, _ = os.Readlink(name)
	if syscall.Stat(name, &st) != nil {
		return out
	}
	out.dev, out.ino, out.mode, out.size = st.Dev, st.Ino, st.Mode, st.Size
	out.modified, out.changed = st.Mtim, st.Ctim
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		// Other files in the directory are ignored.
		out.size, out.modified, out.changed = 0, syscall.Timespec{}, syscall.Timespec{}
	}
	return out
}

// unitFiles returns the paths of the files below a directory that define the agent's units, including the main ones
// that do not exist.
func unitFiles(dir string) []string {
	names := []string{filepath.Join(dir, Service), filepath.Join(dir, Timer),
		filepath.Join(dir, "timers.target.wants", Timer)}
	for _, dropIns := range []string{Service + ".d", Timer + ".d", "corpus-.service.d", "corpus-.timer.d", "service.d",
		"timer.d"} {
		found, _ := filepath.Glob(filepath.Join(dir, dropIns, "*.conf"))
		names = append(names, found...)
	}
	return names
}
