// Package ospath implements the functions of Python's os.path and glob for files of a host. They keep details that
// Go's package path removes.
package ospath

import (
	"context"
	"os"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Join implements os.path.join.
func Join(parts []string) string {
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

// Dir implements os.path.dirname.
func Dir(p string) string {
	head := p[:strings.LastIndexByte(p, '/')+1]
	if trimmed := strings.TrimRight(head, "/"); trimmed != "" {
		return trimmed
	}
	return head
}

// Base implements os.path.basename.
func Base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// Norm implements os.path.normpath. It keeps two leading slashes, which have a special meaning in POSIX.
func Norm(p string) string {
	if strings.HasPrefix(p, "//") && !strings.HasPrefix(p, "///") {
		return "/" + path.Clean(p)
	}
	return path.Clean(p)
}

// Expand implements os.path.expanduser: it replaces a leading ~ or ~user by the home of the user.
func Expand(h *host.Host, p string) string {
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

// Real implements os.path.realpath: it follows all links. Elements that do not exist are kept.
func Real(h *host.Host, p string) string {
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

// Glob implements glob.glob: the paths that match a pattern. A leading dot in a name must be matched by one in the
// pattern.
func Glob(h *host.Host, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		if _, err := h.Files.Lstat(pattern); err != nil {
			return nil
		}
		return []string{pattern}
	}
	dir, last := Dir(pattern), Base(pattern)
	dirs := []string{dir}
	if strings.ContainsAny(dir, "*?[") {
		dirs = Glob(h, dir)
	}
	var found []string
	for _, dir := range dirs {
		found = append(found, globIn(h, dir, last)...)
	}
	return found
}

func globIn(h *host.Host, dir, pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		full := Join([]string{dir, pattern})
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
			found = append(found, Join([]string{dir, name}))
		}
	}
	return found
}

// Walk calls visit for every directory below one, with the names in it; links are not entered. visit reports whether to
// walk the directories below. Directories that are [descent.TooDeep] are left out, and the error names them. The walk
// ends with the context.
func Walk(ctx context.Context, h *host.Host, dir string, visit func(dir string, dirs, files []string) bool) error {
	w := walker{ctx: ctx, host: h, visit: visit}
	w.below(dir, 0)
	return w.leftOut
}

type walker struct {
	ctx     context.Context
	host    *host.Host
	visit   func(dir string, dirs, files []string) bool
	leftOut error // the error of the first directory that was left out
}

func (w *walker) below(dir string, level int) {
	if err := descent.Enter(w.ctx, dir, level); err != nil {
		if w.leftOut == nil {
			w.leftOut = err
		}
		return
	}
	names, err := w.host.Files.ReadDir(dir)
	if err != nil {
		return
	}
	var dirs, files []string
	for _, name := range names {
		if info, err := w.host.Files.Stat(path.Join(dir, name)); err == nil && info.IsDir() {
			dirs = append(dirs, name)
		} else {
			files = append(files, name)
		}
	}
	if !w.visit(dir, dirs, files) {
		return
	}
	for _, name := range dirs {
		if info, err := w.host.Files.Lstat(path.Join(dir, name)); err == nil && !info.IsLink() {
			w.below(path.Join(dir, name), level+1)
		}
	}
}
