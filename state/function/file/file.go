// Package file implements file.*: it reads and changes files. Most changes are made by the state with the same
// name.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/ospath"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// file reads and changes files of the host.
type file struct{ *function.Facts }

// Functions returns the functions of file that templates may call.
func Functions(f *function.Facts) function.Table {
	o := file{f}
	return function.Table{
		"file.basename": function.Of("path", ospath.Base),
		"file.dirname":  function.Of("path", ospath.Dir),
		"file.normpath": function.Of("path", ospath.Norm),
		"file.join": function.Of("path, *args", func(first string, more []string) string {
			return ospath.Join(append([]string{first}, more...))
		}),
		"file.pardir":           function.Of("", func() string { return ".." }),
		"file.file_exists":      function.Of("path", o.IsFile),
		"file.directory_exists": function.Of("path", o.isDir),
		"file.path_exists_glob": function.Of("path", func(p string) bool { return len(ospath.Glob(f.Host, o.path(p))) > 0 }),
		"file.is_link":          function.Of("path", o.isLink),
		"file.is_hardlink":      function.Of("path", o.isHardLink),
		"file.is_chrdev":        function.Of("name", o.is(fs.ModeDevice|fs.ModeCharDevice)),
		"file.is_blkdev":        function.Of("name", o.is(fs.ModeDevice)),
		"file.is_fifo":          function.Of("name", o.is(fs.ModeNamedPipe)),
		"file.access":           function.Of("path, mode", o.access),
		"file.stats":            function.Of("path, hash_type=None, follow_symlinks=True", o.stats),
		"file.lstat":            function.Of("path", o.lstat),
		"file.get_user":         function.Of("path, follow_symlinks=True", o.part("user")),
		"file.get_group":        function.Of("path, follow_symlinks=True", o.part("group")),
		"file.get_uid":          function.Of("path, follow_symlinks=True", o.part("uid")),
		"file.get_gid":          function.Of("path, follow_symlinks=True", o.part("gid")),
		"file.get_mode":         function.Of("path, follow_symlinks=True", o.part("mode")),
		"file.uid_to_user":      function.Of("uid", o.UserName),
		"file.user_to_uid":      function.Of("user", o.userID),
		"file.gid_to_group":     function.Of("gid", o.groupName),
		"file.group_to_gid":     function.Of("group", o.groupID),
		"file.readdir":          function.Of("path", o.readDir),
		"file.readlink":         function.Of("path, canonicalize=False", o.readLink),
		"file.diskusage":        function.Of("path", o.diskUsage),
	}.Add(contentFunctions(o))
}

// path returns a path with ~ expanded.
func (o file) path(p string) string { return ospath.Expand(o.Host, p) }

func (o file) isDir(p string) bool {
	info, err := o.Host.Following().Files.Stat(o.path(p))
	return err == nil && info.IsDir()
}

func (o file) isLink(p string) bool {
	info, err := o.Host.Files.Lstat(o.path(p))
	return err == nil && info.IsLink()
}

// isHardLink reports whether a file has other links. It returns an empty mapping for a file that does not exist.
func (o file) isHardLink(p string) any {
	info, err := o.Host.Files.Lstat(o.path(p))
	if err != nil {
		return value.NewMap()
	}
	return info.Links > 1
}

// is returns a function that reports whether a path leads to a file of a kind.
func (o file) is(kind fs.FileMode) func(string) (bool, error) {
	return func(p string) (bool, error) {
		info, err := o.Host.Following().Files.Stat(o.path(p))
		if err != nil && !function.Absent(err) {
			return false, err
		}
		return err == nil && info.Mode.Type() == kind, nil
	}
}

// access reports whether a file exists (mode f), or whether the process has the permission r, w or x for it.
func (o file) access(p string, mode any) (bool, error) {
	if p = o.path(p); !path.IsAbs(p) {
		return false, fmt.Errorf("%q is not an absolute path", p)
	}
	bits := map[string]fs.FileMode{"f": 0, "r": 4, "w": 2, "x": 1, "0": 0, "4": 4, "2": 2, "1": 1}
	wanted, ok := bits[value.Str(mode)]
	if !ok {
		return false, diag.Call.Hint(errors.New("the mode is unknown"), "use f, r, w or x")
	}
	info, err := o.Host.Following().Files.Stat(p)
	if err != nil {
		return false, nil
	}
	return function.Permitted(info, wanted), nil
}

// stats returns the attributes of a file, or of the link itself if it is broken or follow is false.
func (o file) stats(ctx context.Context, p, form string, follow bool) (*value.Map, error) {
	p = o.path(p)
	// A link that an unprivileged user made is not followed, because callers decide by the owner and the mode how root
	// proceeds.
	info, err := o.Host.Files.Stat(p)
	if err != nil || !follow {
		info, err = o.Host.Files.Lstat(p)
	}
	if err != nil {
		return nil, err
	}
	m := value.NewMap("inode", int(info.Inode), "uid", info.UID, "gid", info.GID,
		"group", o.groupName(info.GID), "user", o.UserName(info.UID),
		"atime", seconds(info.Accessed), "mtime", seconds(info.Modified), "ctime", seconds(info.Changed),
		"size", int(info.Size), "mode", function.ModeText(info.Mode))
	if form != "" {
		sum, err := o.sum(ctx, p, form)
		if err != nil {
			return nil, err
		}
		m.Set("sum", sum)
	}
	m.Set("type", kindOf(info.Mode))
	m.Set("target", ospath.Real(o.Host, p))
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

// part returns a function that returns one value of stats.
func (o file) part(name string) func(context.Context, string, bool) (any, error) {
	return func(ctx context.Context, p string, follow bool) (any, error) {
		m, err := o.stats(ctx, p, "", follow)
		if err != nil {
			return nil, err
		}
		return m.Value(name), nil
	}
}

// lstat returns the result of lstat(2) for a path; an empty mapping if it does not exist.
func (o file) lstat(p string) (*value.Map, error) {
	if p = o.path(p); !path.IsAbs(p) {
		return nil, fmt.Errorf("%q is not an absolute path", p)
	}
	info, err := o.Host.Files.Lstat(p)
	if err != nil {
		return value.NewMap(), nil
	}
	return value.NewMap("st_atime", seconds(info.Accessed), "st_ctime", seconds(info.Changed), "st_gid", info.GID,
		"st_mode", int(function.RawMode(info.Mode)), "st_mtime", seconds(info.Modified), "st_nlink", int(info.Links),
		"st_size", int(info.Size), "st_uid", info.UID), nil
}

// userID returns the number of a user, or "" if it does not exist.
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

// groupName returns the name of the group with a number, or the number if there is no such group.
func (o file) groupName(gid any) any {
	n, err := function.Int(gid)
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

// groupID returns the number of a group, or "" if it does not exist.
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

// readLink returns the target of a link, either of one step or after following all links.
func (o file) readLink(p string, toTheEnd bool) (string, error) {
	p = os.Expand(o.path(p), func(name string) string {
		if v, ok := os.LookupEnv(name); ok {
			return v
		}
		return "$" + name
	})
	target, err := o.Host.Files.Readlink(p)
	if err != nil {
		return "", diag.Call.Hint(fmt.Errorf("%s is not a link: %w", p, err), "test with file.is_link first")
	}
	if toTheEnd {
		return ospath.Real(o.Host, p), nil
	}
	return target, nil
}

// diskUsage adds up the sizes of the files below a directory, each file once.
func (o file) diskUsage(ctx context.Context, p string) (int, error) {
	if info, err := o.Host.Following().Files.Stat(p); err == nil && info.IsRegular() {
		return int(info.Size), nil
	}
	total, seen := 0, map[uint64]bool{}
	err := ospath.Walk(ctx, o.Host, strings.TrimRight(p, "/"), func(dir string, _, files []string) bool {
		for _, name := range files {
			info, err := o.Host.Following().Files.Stat(path.Join(dir, name))
			if err == nil && !seen[info.Inode] {
				seen[info.Inode] = true
				total += int(info.Size)
			}
		}
		return true
	})
	return total, o.complete(ctx, "file.diskusage", err)
}

// complete logs the directories that a walk left out. Only a cancelled context is an error: a user can make directories
// of any depth, and must not be able to prevent a template from being rendered.
func (o file) complete(ctx context.Context, function string, leftOut error) error {
	if leftOut != nil && ctx.Err() == nil {
		o.WriteLog("warning", fmt.Sprintf("%s: %v; what is below it is left out", function, leftOut))
	}
	return ctx.Err()
}
