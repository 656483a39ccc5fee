package outgoing

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// Readable records which files every user may read. The changes of such a file may leave the host. It is safe for
// concurrent use.
type Readable struct {
	layout layout.Layout
	report *report.Report
	record *report.Builder

	mu   sync.Mutex
	seen map[string]bool // files of states, and whether every user could read them before and after
}

// NewReadable returns the Readable for the files of a host that a run reports.
func NewReadable(l layout.Layout, report *report.Report, record *report.Builder) *Readable {
	return &Readable{layout: l, report: report, record: record, seen: map[string]bool{}}
}

// LookAt checks whether every user may read a file, if the file exists, and records that.
func (r *Readable) LookAt(file string) {
	if !filepath.IsAbs(file) {
		return
	}
	public, there := readableByAll(r.layout.Root, r.layout.Path(file))
	if !there {
		return
	}
	shown := r.record.Show(file) // as the report names it
	r.mu.Lock()
	defer r.mu.Unlock()
	before, looked := r.seen[shown]
	r.seen[shown] = public && (before || !looked)
}

// ByEveryUser reports whether every user may read a file, and could each time the run checked it. It returns false for
// a file that no state is named after if a rollback may have replaced it.
func (r *Readable) ByEveryUser(file string) bool {
	r.mu.Lock()
	public, looked := r.seen[file]
	r.mu.Unlock()
	if looked {
		return public
	}
	if !filepath.IsAbs(file) || r.report.Undo != nil {
		return false
	}
	public, _ = readableByAll(r.layout.Root, r.layout.Path(file))
	return public
}

// readableByAll reports whether every user may read a file: it, and each directory on the way to it from the root.
// there is false if there is no file. A run asks for each state, so a path without links is looked at once.
func readableByAll(root, file string) (public, there bool) {
	public, there, links := readableWay(root, file)
	if !links {
		return public, there
	}
	if _, err := os.Stat(file); err != nil {
		return false, false
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false, true
	}
	if file, err = filepath.EvalSymlinks(file); err != nil || !strings.HasPrefix(file, below(root)) {
		return false, true
	}
	public, _, links = readableWay(root, file)
	return public && !links, true
}

// below returns what the paths below a root begin with.
func below(root string) string { return strings.TrimSuffix(root, "/") + "/" }

// readableWay does the work of readableByAll for a path below the root, up to the first link.
func readableWay(root, file string) (public, there, links bool) {
	rest, is := strings.CutPrefix(file, below(root))
	if !is || filepath.Clean(file) != file {
		return false, false, true
	}
	public = true
	way := strings.TrimSuffix(below(root), "/")
	for name := range strings.SplitSeq(rest, "/") {
		way += "/" + name
		info, err := os.Lstat(way)
		switch {
		case err != nil:
			return false, false, false
		case info.Mode()&os.ModeSymlink != 0:
			return false, true, true
		}
		may := os.FileMode(0o004)
		if len(way) < len(file) {
			may = 0o001
		}
		public = public && info.Mode().Perm()&may != 0
	}
	return public, true, false
}
