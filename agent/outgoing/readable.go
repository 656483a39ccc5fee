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
	if _, err := os.Stat(r.layout.Path(file)); err != nil {
		return
	}
	public := readableByAll(r.layout.Root, r.layout.Path(file))
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
	return filepath.IsAbs(file) && r.report.Undo == nil && readableByAll(r.layout.Root, r.layout.Path(file))
}

// readableByAll reports whether every user may read a file: it, and each directory on the way to it from the root.
func readableByAll(root, file string) bool {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false
	}
	file, err = filepath.EvalSymlinks(file)
	if err != nil || !strings.HasPrefix(file, strings.TrimSuffix(root, "/")+"/") {
		return false
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return false
	}
	for dir := filepath.Dir(file); len(dir) > len(root); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}
