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

// absolute checks a path that a state is about, and gives ~ and ~user the meaning they have to a
// shell.
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
		return p, diag.WithHint(fmt.Errorf("%s is %s, which is not an absolute path", what, p), "start it with a slash")
	}
	return p, nil
}

// look stats a path; what is not there, also because a file is in the way, is no error.
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

// showsAsDir reports whether a path is a directory or a link to one, as a listing shows it. Whoever controls the link,
// it is only looked at, so the answer is good for telling kinds of names apart and not for going there.
func showsAsDir(h *host.Host, p string) bool { return isDir(h.Following(), p) }

// noParent is the failure of a state that would make something in a directory that is not there.
func noParent(file string) error {
	err := diag.WithHint(fmt.Errorf("the directory %s is not there", path.Dir(file)),
		"set makedirs: True, or require a file.directory that makes it")
	return host.Lacking(err, host.ADirectory, path.Dir(file))
}

// parents makes the directories above a path that are not there, each with the same owner and mode.
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
		return fmt.Errorf("%s is there and is no directory", dir)
	}
	if err := parents(h, dir, p); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		p.mode.Bits |= 0o700 // only root can put something into a directory that its owner may not write
	}
	return makeDir(h, dir, p)
}

// makeDir makes one directory.
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

// searchable is the mode of directories that are made for a file of some mode: whoever may do
// anything with the file may pass through them. Special bits are the file's alone.
func searchable(mode fs.FileMode) fs.FileMode {
	mode &= fs.ModePerm
	for shift := 0; shift < 9; shift += 3 {
		if mode>>shift&7 != 0 {
			mode |= 1 << shift
		}
	}
	return mode
}
