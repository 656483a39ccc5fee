package function

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// The functions of Python's os.path, which keep what Go's path package cleans away.

func joinPaths(parts []string) string {
	joined := ""
	for i, part := range parts {
		switch {
		case i == 0 || strings.HasPrefix(part, "/"):
			joined = part
		case joined == "" || strings.HasSuffix(joined, "/"):
			joined += part
		default:
			joined += "/" + part
		}
	}
	return joined
}

func dirname(p string) string {
	head := p[:strings.LastIndexByte(p, '/')+1]
	if trimmed := strings.TrimRight(head, "/"); trimmed != "" {
		return trimmed
	}
	return head
}

func basename(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// normpath keeps two slashes at the start, which POSIX gives a meaning of their own.
func normpath(p string) string {
	if strings.HasPrefix(p, "//") && !strings.HasPrefix(p, "///") {
		return "/" + path.Clean(p)
	}
	return path.Clean(p)
}

// expand puts a home in the place of a leading ~ or ~user.
func expand(h *host.Host, p string) string {
	if !strings.HasPrefix(p, "~") {
		return p
	}
	name, rest, _ := strings.Cut(p[1:], "/")
	home := os.Getenv("HOME")
	if name != "" {
		u, ok, err := h.Accounts.User(name)
		if err != nil || !ok {
			return p
		}
		home = u.Home
	}
	if home == "" {
		return p
	}
	return strings.TrimRight(strings.TrimRight(home, "/")+"/"+rest, "/")
}

// realpath follows all links on the way. What is not there stays as it is written.
func realpath(h *host.Host, p string) string {
	const most = 40
	resolved, rest := "/", strings.Split(path.Clean(p), "/")
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == "" {
			continue
		}
		next := path.Join(resolved, part)
		target, err := h.Files.Readlink(next)
		if hops++; err != nil || hops > most {
			resolved = next
			continue
		}
		if path.IsAbs(target) {
			resolved = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return resolved
}

// glob lists the paths that fit a pattern, as Python's glob.glob does: a name that starts with a dot
// has to be asked for.
func glob(h *host.Host, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		if _, err := h.Files.Lstat(pattern); err != nil {
			return nil
		}
		return []string{pattern}
	}
	dir, last := dirname(pattern), basename(pattern)
	dirs := []string{dir}
	if strings.ContainsAny(dir, "*?[") {
		dirs = glob(h, dir)
	}
	var found []string
	for _, dir := range dirs {
		found = append(found, globIn(h, dir, last)...)
	}
	return found
}

func globIn(h *host.Host, dir, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		full := joinPaths([]string{dir, pattern})
		if _, err := h.Files.Lstat(full); err != nil {
			return nil
		}
		return []string{full}
	}
	names, err := h.Files.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, ".") == strings.HasPrefix(pattern, ".") && value.Glob(pattern, name) {
			found = append(found, joinPaths([]string{dir, name}))
		}
	}
	return found
}

// walkTree calls visit for every directory below one, with the names in it; links are not entered.
// visit says whether to go deeper.
func walkTree(h *host.Host, dir string, visit func(dir string, dirs, files []string) bool) {
	names, err := h.Files.ReadDir(dir)
	if err != nil {
		return
	}
	var dirs, files []string
	for _, name := range names {
		if info, err := h.Files.Stat(path.Join(dir, name)); err == nil && info.IsDir() {
			dirs = append(dirs, name)
		} else {
			files = append(files, name)
		}
	}
	if !visit(dir, dirs, files) {
		return
	}
	for _, name := range dirs {
		if info, err := h.Files.Lstat(path.Join(dir, name)); err == nil && !info.IsLink() {
			walkTree(h, path.Join(dir, name), visit)
		}
	}
}

// longestFile is how much of a file a template may hold.
const longestFile = 64 << 20

// readText reads a regular file. Others could be without an end, or wait for somebody to write.
func readText(h *host.Host, p string) (string, error) {
	info, err := h.Files.Stat(p)
	if err != nil {
		return "", err
	}
	if !info.IsRegular() {
		return "", fmt.Errorf("%s is no regular file", p)
	}
	f, err := h.Files.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, longestFile+1))
	if err == nil && len(data) > longestFile {
		err = fmt.Errorf("%s is longer than %d MiB", p, longestFile>>20)
	}
	return string(data), err
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// there takes the error of a call that looked for a path and says whether something is there, as Python's os.path.exists
// does: a file where a directory would have to be, or a loop of links, means no. Any other error, of the disk or of what
// may be read, says nothing about that, and is returned.
func there(err error) (bool, error) {
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return false, nil
	}
	return walk.Found(err)
}
