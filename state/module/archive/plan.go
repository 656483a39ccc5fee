package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// plan holds what Apply has to do.
type plan struct {
	extract bool
	create  bool // the target does not exist
	own     bool // some files have another owner
	removed []string
}

// top returns the names directly below the target, those of directories first.
func (x *extracted) top() (dirs, files []string) {
	for _, e := range x.contents {
		name, _, below := strings.Cut(e.name, "/")
		switch {
		case below || e.kind == directory:
			if !slices.Contains(dirs, name) {
				dirs = append(dirs, name)
			}
		case !slices.Contains(files, name):
			files = append(files, name)
		}
	}
	return dirs, files
}

// checkTop returns an error for an empty archive and, if enforce_toplevel is set, for one with several top-level files
// or directories.
func (x *extracted) checkTop() error {
	if len(x.contents) == 0 {
		return fmt.Errorf("there is nothing in the archive %s", x.source.Shown)
	}
	if x.dotted {
		return nil // everything is in the directory ./
	}
	dirs, files := x.top()
	links := 0
	for _, e := range x.contents {
		if e.kind == symlink && !strings.Contains(e.name, "/") {
			links++
		}
	}
	if !x.EnforceToplevel || len(dirs) <= 1 && len(files)-links <= 0 {
		return nil
	}
	return diag.Archive.Hint(fmt.Errorf("the archive %s has more than one directory at its top", x.source.Shown),
		"set enforce_toplevel: False, and name a directory of its own such as %s", path.Join(x.dir, "some_dir"))
}

func there(h *host.Host, p string) bool {
	_, err := h.Files.Lstat(p)
	return err == nil
}

// replaces reports whether the target is a link of another user, which clean_parent removes without following
// it.
func (x *extracted) replaces(h *host.Host) bool {
	if !x.CleanParent {
		return false
	}
	info, err := h.Files.Lstat(x.dir)
	return err == nil && info.IsLink() && h.Refuses(x.dir) != nil
}

// mostShown is the number of entries that an error names; a user may have put something in the place of each.
const mostShown = 5

// plan compares the list with the host.
func (x *extracted) plan(h *host.Host) (p plan, err error) {
	missing, wrong, err := x.differences(h)
	if err != nil {
		return p, err
	}
	before := x.recorded(h)
	p.extract = missing || x.Overwrite || len(wrong) > 0 ||
		x.SourceHashUpdate && x.source.Sum != "" && before != "" && before != x.source.Sum
	if len(wrong) > 0 && !x.Clean && !x.CleanParent && !x.Force {
		return p, x.otherKinds(wrong)
	}
	p.create = !there(h, x.dir) || x.CleanParent
	p.removed = x.inTheWay(h, p, wrong)
	p.own, err = x.foreign(h)
	p.own = p.own || p.extract && (x.User != "" || x.Group != "")
	return p, err
}

// otherKinds returns the error for entries that exist with another type.
func (x *extracted) otherKinds(wrong []string) error {
	shown, more := wrong[:min(len(wrong), mostShown)], ""
	if n := len(wrong) - len(shown); n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	err := diag.Archive.Hint(fmt.Errorf("below %s there is something else than the archive has: %s%s",
		x.dir, diag.OneLine(strings.Join(shown, ", ")), more), "set force: True to remove it before extracting")
	for _, name := range wrong {
		err = host.WithObstacle(path.Join(x.dir, name), err)
	}
	return err
}

// inTheWay returns the paths to remove before extraction.
func (x *extracted) inTheWay(h *host.Host, p plan, wrong []string) (removed []string) {
	dirs, files := x.top()
	switch {
	case !p.extract:
		return nil
	case x.CleanParent && there(h, x.dir):
		return []string{x.dir}
	case x.Clean:
		wrong = slices.Concat(dirs, files)
	}
	slices.Sort(wrong)
	for _, name := range wrong {
		if full := path.Join(x.dir, name); there(h, full) {
			removed = append(removed, full)
		}
	}
	return removed
}

// differences reports whether an entry is missing, and returns the entries that exist with another type.
func (x *extracted) differences(h *host.Host) (missing bool, wrong []string, err error) {
	if x.replaces(h) {
		return len(x.contents) > 0, nil, nil
	}
	files, err := h.Files.Beneath(x.dir)
	if found, err := walk.Found(err); !found {
		return err == nil && len(x.contents) > 0, nil, err
	}
	defer files.Close()
	for _, e := range x.contents {
		info, err := files.Lstat("/" + e.name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, host.ErrNotDir), errors.Is(err, host.ErrLink):
			missing = true // or it is below a file or link, which is added to wrong
		case err != nil:
			return missing, wrong, err
		case e.kind == directory && !info.IsDir(), e.kind == symlink && !info.IsLink(),
			(e.kind == file || e.kind == hardlink) && (info.IsDir() || info.IsLink()):
			wrong = append(wrong, e.name)
		}
	}
	for _, dir := range x.above() {
		info, err := files.Lstat("/" + dir)
		if err == nil && !info.IsDir() && !slices.Contains(wrong, dir) {
			wrong = append(wrong, dir)
		}
	}
	return missing, wrong, nil
}

// above returns the directories of all entries, including those without an entry of their own.
func (x *extracted) above() []string {
	var dirs []string
	seen := map[string]bool{}
	for _, e := range x.contents {
		for dir := path.Dir(e.name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}
