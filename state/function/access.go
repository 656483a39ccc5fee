package function

import (
	"io/fs"
	"os"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Permitted reports whether the current process may read (4), write (2) or execute (1) a file.
func Permitted(info host.Info, wanted fs.FileMode) bool {
	uid := os.Geteuid()
	if uid == 0 {
		return wanted != 1 || info.IsDir() || info.Mode&0o111 != 0
	}
	mode := info.Mode.Perm()
	switch {
	case info.UID == uid:
		mode >>= 6
	case memberOf(info.GID):
		mode >>= 3
	}
	return mode&wanted == wanted
}

func memberOf(gid int) bool {
	groups, err := os.Getgroups()
	if err != nil {
		return gid == os.Getegid()
	}
	return gid == os.Getegid() || slices.Contains(groups, gid)
}
