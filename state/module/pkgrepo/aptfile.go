package pkgrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
)

const (
	mainList = "/etc/apt/sources.list"
	listDir  = "/etc/apt/sources.list.d"
)

// lists holds all files that configure repositories.
type lists struct{ files []*listFile }

// listFile is a file that configures repositories. Lines that are not entries are preserved.
type listFile struct {
	path    string
	lines   []line
	foreign []entry // entries of a file in deb822 format, which is not written
	was     string  // the text that was read
}

// line is a line of a file. An entry is formatted again only if it has changed.
type line struct {
	text  string
	entry *entry // nil for other lines
	was   string // the entry that was read; "" for a new one
	kept  bool   // the line has an entry, which lists.only has hidden
}

func (ln line) String() string {
	if ln.entry == nil || ln.entry.String() == ln.was {
		return ln.text
	}
	return ln.entry.String()
}

// readLists reads all files that configure repositories.
func readLists(h *host.Host) (*lists, error) {
	l := &lists{}
	names, err := h.Files.ReadDir(listDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing package repositories: %w", err)
	}
	paths := []string{mainList}
	for _, name := range names {
		if strings.HasSuffix(name, ".list") || strings.HasSuffix(name, ".sources") {
			paths = append(paths, listDir+"/"+name)
		}
	}
	for _, path := range paths {
		data, err := h.Files.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading package repositories: %w", err)
		}
		l.files = append(l.files, readList(path, string(data)))
	}
	return l, nil
}

func readList(path, text string) *listFile {
	f := &listFile{path: path, was: text}
	if strings.HasSuffix(path, ".sources") {
		f.foreign = parseDeb822(text)
		return f
	}
	if text == "" {
		return f
	}
	for text := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		ln := line{text: text}
		if e, ok := parseEntry(text); ok {
			ln.entry, ln.was = &e, e.String()
		}
		f.lines = append(f.lines, ln)
	}
	return f
}

// only hides the entries for which is returns false.
func (l *lists) only(is func(entry) bool) *lists {
	for _, f := range l.files {
		f.foreign = structsort.Without(f.foreign, func(e entry) bool { return !is(e) })
		for i, ln := range f.lines {
			if ln.entry != nil && !is(*ln.entry) {
				f.lines[i] = line{text: ln.text, kept: true}
			}
		}
	}
	return l
}

// find returns the file and the index of the entry of a repository. foreign reports that the file cannot be written.
func (l *lists) find(want entry) (f *listFile, at int, found, foreign bool) {
	for _, f := range l.files {
		for i, ln := range f.lines {
			if ln.entry != nil && want.same(*ln.entry) {
				return f, i, true, false
			}
		}
		for i, e := range f.foreign {
			if want.same(e) {
				return f, i, true, true
			}
		}
	}
	return nil, 0, false, false
}

// file returns the file at a path, which need not exist.
func (l *lists) file(path string) *listFile {
	for _, f := range l.files {
		if f.path == path {
			return f
		}
	}
	f := &listFile{path: path}
	l.files = append(l.files, f)
	return f
}

// append adds an entry at the end of a file.
func (f *listFile) append(e entry) { f.lines = append(f.lines, line{entry: &e}) }

func (f *listFile) replace(at int, e entry) { *f.lines[at].entry = e }

// remove deletes a line.
func (f *listFile) remove(at int) { f.lines = slices.Delete(f.lines, at, at+1) }

func (f *listFile) hasEntries() bool {
	for _, ln := range f.lines {
		if ln.entry != nil || ln.kept {
			return true
		}
	}
	return false
}

// write writes the files that have changed and removes those in sources.list.d without entries.
func (l *lists) write(h *host.Host) error {
	for _, f := range l.files {
		if len(f.foreign) > 0 || f.text() == f.was {
			continue
		}
		write := func() error { return h.WriteText(f.path, f.text()) }
		if f.path != mainList && !f.hasEntries() {
			write = func() error { return h.Files.RemoveAll(f.path) }
		}
		if err := write(); err != nil {
			return fmt.Errorf("writing package repositories: %w", err)
		}
	}
	return nil
}

func (f *listFile) text() string {
	var b strings.Builder
	for _, ln := range f.lines {
		b.WriteString(ln.String() + "\n")
	}
	return b.String()
}

// consolidate merges all entries of a repository into one with all components.
func (l *lists) consolidate() {
	first := map[string]*entry{}
	for _, f := range l.files {
		f.lines = structsort.Without(f.lines, func(ln line) bool {
			if ln.entry == nil {
				return false
			}
			e := *ln.entry
			key := fmt.Sprint(e.kind, e.disabled, e.optionWords(), bare(e.uri), e.suite)
			kept, ok := first[key]
			if !ok {
				first[key] = ln.entry
				return false
			}
			kept.comps = slices.Compact(sorted(append(kept.comps, e.comps...)))
			return true
		})
	}
}
