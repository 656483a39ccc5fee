package function

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type file struct{ *Facts }

func fileTable(f *Facts) Table {
	o := file{f}
	return Table{
		"file.basename":         Of("path", basename),
		"file.dirname":          Of("path", dirname),
		"file.normpath":         Of("path", normpath),
		"file.join":             Of("path, *args", func(first string, more []string) string { return joinPaths(append([]string{first}, more...)) }),
		"file.pardir":           Of("", func() string { return ".." }),
		"file.file_exists":      Of("path", o.isFile),
		"file.directory_exists": Of("path", o.isDir),
		"file.path_exists_glob": Of("path", func(p string) bool { return len(glob(f.Host, o.path(p))) > 0 }),
		"file.is_link":          Of("path", o.isLink),
		"file.is_hardlink":      Of("path", o.isHardLink),
		"file.is_chrdev":        Of("name", o.is(fs.ModeDevice|fs.ModeCharDevice)),
		"file.is_blkdev":        Of("name", o.is(fs.ModeDevice)),
		"file.is_fifo":          Of("name", o.is(fs.ModeNamedPipe)),
		"file.access":           Of("path, mode", o.access),
		"file.stats":            Of("path, hash_type=None, follow_symlinks=True", o.stats),
		"file.lstat":            Of("path", o.lstat),
		"file.get_user":         Of("path, follow_symlinks=True", o.part("user")),
		"file.get_group":        Of("path, follow_symlinks=True", o.part("group")),
		"file.get_uid":          Of("path, follow_symlinks=True", o.part("uid")),
		"file.get_gid":          Of("path, follow_symlinks=True", o.part("gid")),
		"file.get_mode":         Of("path, follow_symlinks=True", o.part("mode")),
		"file.uid_to_user":      Of("uid", o.userName),
		"file.user_to_uid":      Of("user", o.userID),
		"file.gid_to_group":     Of("gid", o.groupName),
		"file.group_to_gid":     Of("group", o.groupID),
		"file.readdir":          Of("path", o.readDir),
		"file.readlink":         Of("path, canonicalize=False", o.readLink),
		"file.diskusage":        Of("path", o.diskUsage),
	}.add(fileContentTable(o))
}

// path is a path with ~ expanded.
func (o file) path(p string) string { return expand(o.Host, p) }

func (o file) isDir(p string) bool {
	info, err := o.Host.Following().Files.Stat(o.path(p))
	return err == nil && info.IsDir()
}

func (o file) isLink(p string) bool {
	info, err := o.Host.Files.Lstat(o.path(p))
	return err == nil && info.IsLink()
}

// isHardLink says nothing of a file that is not there.
func (o file) isHardLink(p string) any {
	info, err := o.Host.Files.Lstat(o.path(p))
	if err != nil {
		return value.NewMap()
	}
	return info.Links > 1
}

// is tells files of a kind from others.
func (o file) is(kind fs.FileMode) func(string) (bool, error) {
	return func(p string) (bool, error) {
		info, err := o.Host.Following().Files.Stat(o.path(p))
		if err != nil && !absent(err) {
			return false, err
		}
		return err == nil && info.Mode.Type() == kind, nil
	}
}

// access says what the run itself may do with a file: f whether it is there, r, w and x.
func (o file) access(p string, mode any) (bool, error) {
	if p = o.path(p); !path.IsAbs(p) {
		return false, fmt.Errorf("%q is not an absolute path", p)
	}
	bits := map[string]fs.FileMode{"f": 0, "r": 4, "w": 2, "x": 1, "0": 0, "4": 4, "2": 2, "1": 1}
	wanted, ok := bits[value.Str(mode)]
	if !ok {
		return false, diag.WithHint(errors.New("there is no such mode"), "use f, r, w or x")
	}
	info, err := o.Host.Following().Files.Stat(p)
	if err != nil {
		return false, nil
	}
	return permitted(info, wanted), nil
}

// stats describes a file, or where a link leads to nothing, the link.
func (o file) stats(p, form string, follow bool) (*value.Map, error) {
	p = o.path(p)
	// A link that a user made is described itself: who asks for an owner or a mode decides by it what root does.
	info, err := o.Host.Files.Stat(p)
	if err != nil || !follow {
		info, err = o.Host.Files.Lstat(p)
	}
	if err != nil {
		return nil, err
	}
	m := value.NewMap("inode", int(info.Inode), "uid", info.UID, "gid", info.GID,
		"group", o.groupName(info.GID), "user", o.userName(info.UID),
		"atime", seconds(info.Accessed), "mtime", seconds(info.Modified), "ctime", seconds(info.Changed),
		"size", int(info.Size), "mode", modeText(info.Mode))
	if form != "" {
		sum, err := o.sum(p, form)
		if err != nil {
			return nil, err
		}
		m.Set("sum", sum)
	}
	m.Set("type", kindOf(info.Mode))
	m.Set("target", realpath(o.Host, p))
	return m, nil
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "dir"
	case fs.ModeDevice | fs.ModeCharDevice:
		return "char"
	case fs.ModeDevice:
		return "block"
	case fs.ModeSymlink:
		return "link"
	case fs.ModeNamedPipe:
		return "pipe"
	case fs.ModeSocket:
		return "socket"
	}
	return "file"
}

// part is one of the things stats tells.
func (o file) part(name string) func(string, bool) (any, error) {
	return func(p string, follow bool) (any, error) {
		m, err := o.stats(p, "", follow)
		if err != nil {
			return nil, err
		}
		return m.Value(name), nil
	}
}

// lstat is what the kernel says of a path itself; nothing of one that is not there.
func (o file) lstat(p string) (*value.Map, error) {
	if p = o.path(p); !path.IsAbs(p) {
		return nil, fmt.Errorf("%q is not an absolute path", p)
	}
	info, err := o.Host.Files.Lstat(p)
	if err != nil {
		return value.NewMap(), nil
	}
	return value.NewMap("st_atime", seconds(info.Accessed), "st_ctime", seconds(info.Changed), "st_gid", info.GID,
		"st_mode", int(rawMode(info.Mode)), "st_mtime", seconds(info.Modified), "st_nlink", int(info.Links),
		"st_size", int(info.Size), "st_uid", info.UID), nil
}

// userID is the number of a user, or nothing.
func (o file) userID(name any) any {
	switch name := name.(type) {
	case int:
		return name
	case string:
		if u, ok, err := o.Host.Accounts.User(name); ok && err == nil {
			return u.UID
		}
	}
	return ""
}

// groupName is the name of a group's number, or the number.
func (o file) groupName(gid any) any {
	n, err := whole(gid)
	if err != nil {
		id, ok := o.groupID(gid).(int)
		if !ok {
			return ""
		}
		n = id
	}
	if g, ok, err := o.Host.Accounts.GroupByID(n); ok && err == nil {
		return g.Name
	}
	return n
}

// groupID is the number of a group, or nothing.
func (o file) groupID(name any) any {
	switch name := name.(type) {
	case int:
		return name
	case string:
		if g, ok, err := o.Host.Accounts.Group(name); ok && err == nil {
			return g.GID
		}
	}
	return ""
}

func (o file) readDir(p string) ([]string, error) {
	if p = o.path(p); !path.IsAbs(p) {
		return nil, fmt.Errorf("%q is not an absolute path", p)
	}
	names, err := o.Host.Files.ReadDir(p)
	if err != nil {
		return nil, err
	}
	return append([]string{".", ".."}, names...), nil
}

// readLink is where a link leads to, in one step or to the end.
func (o file) readLink(p string, toTheEnd bool) (string, error) {
	p = os.Expand(o.path(p), func(name string) string {
		if v, ok := os.LookupEnv(name); ok {
			return v
		}
		return "$" + name
	})
	target, err := o.Host.Files.Readlink(p)
	if err != nil {
		return "", diag.WithHint(fmt.Errorf("%s is no link: %w", p, err), "ask file.is_link first")
	}
	if toTheEnd {
		return realpath(o.Host, p), nil
	}
	return target, nil
}

// diskUsage adds up the sizes of the files below a directory, each file once.
func (o file) diskUsage(p string) int {
	if info, err := o.Host.Following().Files.Stat(p); err == nil && info.IsRegular() {
		return int(info.Size)
	}
	total, seen := 0, map[uint64]bool{}
	walkTree(o.Host, strings.TrimRight(p, "/"), func(dir string, _, files []string) bool {
		for _, name := range files {
			info, err := o.Host.Following().Files.Stat(path.Join(dir, name))
			if err == nil && !seen[info.Inode] {
				seen[info.Inode] = true
				total += int(info.Size)
			}
		}
		return true
	})
	return total
}
