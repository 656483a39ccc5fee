package passwd

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Members returns a function for walk.Options that lists the members of a group from the files of a root, "" for the
// machine's. The files are read again when they change. The members are unknown if nsswitch.conf names other sources of
// accounts, which need not list them.
func Members(root string) func(gid uint32) (uids []uint32, known bool) {
	m := &members{dir: root}
	return m.of
}

// members caches the members of each group.
type members struct {
	dir string

	mu     sync.Mutex
	stamps []unix.Stat_t // of the files as they were read
	known  bool
	groups map[uint32][]uint32
}

func (m *members) of(gid uint32) ([]uint32, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	root, err := walk.Open(walk.Options{Dir: m.dir})
	if err != nil {
		return nil, false
	}
	defer root.Close()
	files, stamps, err := accountFiles(root)
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err != nil {
		return nil, false
	}
	if !slices.EqualFunc(stamps, m.stamps, unchanged) {
		if err := m.read(files); err != nil {
			return nil, false
		}
		m.stamps = stamps
	}
	return m.groups[gid], m.known
}

// accountFiles opens the files that define the members of groups. The caller must close them, even after an error.
func accountFiles(root *walk.Root) (files []*os.File, stamps []unix.Stat_t, err error) {
	for _, name := range []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf"} {
		f, err := root.OpenFile(name, unix.O_RDONLY|unix.O_NONBLOCK)
		if name == "/etc/nsswitch.conf" && errors.Is(err, fs.ErrNotExist) {
			continue // the C library then reads only the files
		}
		if err != nil {
			return files, stamps, err
		}
		files = append(files, f)
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return files, stamps, err
		}
		stamps = append(stamps, st)
	}
	return files, stamps, nil
}

func (m *members) read(files []*os.File) error {
	texts := make([]string, 3)
	for i, f := range files {
		data, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		texts[i] = string(data)
	}
	m.known, m.groups = filesOnly(texts[2]), membersIn(Users(texts[0]), Groups(texts[1]))
	return nil
}

func unchanged(a, b unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// filesOnly reports whether accounts come only from the files. It ignores the source systemd, which adds users of
// units, each in a group of its own.
func filesOnly(nsswitch string) bool {
	more := OtherSources(strings.ReplaceAll(nsswitch, "systemd", "files"))
	return !more["passwd"] && !more["group"] && !more["initgroups"]
}

// membersIn lists the users of each group: those with it as the primary group, and those whom it lists. A name without
// an account is left out.
func membersIn(users []User, groups []Group) map[uint32][]uint32 {
	all, byName := map[uint32][]uint32{}, map[string][]uint32{}
	for _, u := range users {
		all[uint32(u.GID)] = append(all[uint32(u.GID)], uint32(u.UID))
		byName[u.Name] = append(byName[u.Name], uint32(u.UID))
	}
	for _, g := range groups {
		for _, name := range g.Members {
			all[uint32(g.GID)] = append(all[uint32(g.GID)], byName[name]...)
		}
	}
	return all
}
