package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// absolute returns a path with ~ and ~user expanded as in a shell. It returns an error if the path is not absolute.
func absolute(h *host.Host, what, p string) (string, error) {
	if strings.HasPrefix(p, "~") {
		who, rest, _ := strings.Cut(p[1:], "/")
		if who == "" {
			who = "root"
		}
		if u, ok, err := h.Accounts.User(who); err == nil && ok {
			p = path.Join(u.Home, rest)
		}
	}
	if p == "" {
		return p, fmt.Errorf("%s is empty", what)
	}
	if !path.IsAbs(p) {
		return p, diag.Argument.Hint(fmt.Errorf("%s is %s, which is not an absolute path", what, p), "start it with a slash")
	}
	return p, nil
}

// look calls stat and reports whether the path exists. A path that does not exist, or that leads through a file, is not
// an error.
func look(stat func(string) (host.Info, error), p string) (info host.Info, there bool, err error) {
	info, err = stat(p)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrNotDir) {
		return info, false, nil
	}
	return info, err == nil, err
}

// isDir reports whether a path leads to a directory.
func isDir(h *host.Host, p string) bool {
	info, err := h.Files.Stat(p)
	return err == nil && info.IsDir()
}

// showsAsDir reports whether a path is a directory or a link to one, as a listing shows it. It follows links of
// any user, so the answer must not be used to enter the directory.
func showsAsDir(h *host.Host, p string) bool { return isDir(h.Following(), p) }

// noParent returns the error for a missing parent directory, or for what is in its place.
func noParent(h *host.Host, file string) error {
	if err := h.Obstructed(path.Dir(file)); err != nil {
		return err
	}
	err := diag.Prerequisite.Hint(fmt.Errorf("the directory %s does not exist", path.Dir(file)),
		"set makedirs: True, or require a file.directory that makes it")
	return host.WithMissing(err, host.ADirectory, path.Dir(file))
}

// parents creates the missing directories above a path, all with the same owner and mode.
func parents(h *host.Host, file string, p perms) error {
	dir := path.Dir(path.Clean(file))
	if dir == "/" {
		return nil
	}
	info, there, err := look(h.Files.Stat, dir)
	switch {
	case err != nil:
		return err
	case there && info.IsDir():
		return nil
	case there:
		return host.Unlike(dir, info, host.ADirectory, "")
	}
	if err := parents(h, dir, p); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		p.mode.Bits |= 0o700 // without root, the agent can only write to a directory whose mode lets its owner do so
	}
	return makeDir(h, dir, p)
}

// makeDir creates one directory.
func makeDir(h *host.Host, dir string, p perms) error {
	mode := 0o777 &^ h.Files.Umask()
	if p.mode.Given {
		mode = p.mode.Bits
	}
	if err := h.Files.Mkdir(dir, mode); err != nil {
		return err
	}
	if uid, gid := p.ids(); uid >= 0 || gid >= 0 {
		return h.Files.Own(dir, uid, gid, &mode)
	}
	return nil
}

// searchable returns the mode of directories that are created for a file with a mode: users who have any right
// to the file may search the directories. Special bits are dropped.
func searchable(mode fs.FileMode) fs.FileMode {
	mode &= fs.ModePerm
	for shift := 0; shift < 9; shift += 3 {
		if mode>>shift&7 != 0 {
			mode |= 1 << shift
		}
	}
	return mode
}
