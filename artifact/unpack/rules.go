package unpack

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/manifest"
)

type kind int

const (
	skip kind = iota
	directory
	regular
	symlink
	hardlink
)

// entry is one admitted entry of an archive.
type entry struct {
	name     string // clean, slash-separated, relative to the release
	kind     kind
	mode     fs.FileMode // of a file, as it will be on disk
	link     string      // a symlink's target as written, or the clean name of a hard link's file
	modified time.Time   // in whole seconds; zero if the archive has none
	size     int64       // of a regular file

	listed *manifest.Entry // its entry in the tree's list; the sink sets the digest
}

// rules decide which entries may be unpacked. They record every name.
type rules struct {
	limits  Limits
	summary Summary
	kinds   map[string]kind   // all names in the tree, including parents
	named   map[string]bool   // names with an entry
	links   map[string]string // symlinks: name to target
	texts   int               // total bytes of names and link targets
	growth  *growth
	list    []*manifest.Entry
	last    string // the previous name
}

// newRules returns the rules for an artifact of so many bytes.
func newRules(limits Limits, packed int64) *rules {
	return &rules{limits: limits, growth: &growth{ratio: int64(limits.Ratio), packed: packed}, kinds: map[string]kind{},
		named: map[string]bool{}, links: map[string]string{}}
}

const (
	maxName   = 255       // bytes of a path component, the limit of Linux filesystems
	maxPath   = 4000      // bytes of a path, and of the target of a symbolic link
	maxTexts  = 128 << 20 // total bytes of names and link targets, which are kept in memory
	modeTypes = 0o170000
)

// admit checks an entry of an archive, and returns it in the form for the release: with a name in normal form that
// passes through no link, a kind that is allowed in releases, and a mode without set-ID bits. If the entry is not
// allowed, the error is a *Hostile.
func (r *rules) admit(h *tar.Header) (entry, error) {
	r.last = h.Name
	if err := r.weigh(h); err != nil {
		return entry{}, err
	}
	refuse := func(format string, args ...any) (entry, error) {
		return entry{}, &Hostile{Entry: h.Name, Rule: fmt.Sprintf(format, args...)}
	}
	name, problem := r.cleanName(h.Name)
	switch {
	case problem != "":
		return refuse("%s", problem)
	case name == ".":
		return entry{kind: skip}, nil
	}
	e := entry{name: name, kind: kindOf(h)}
	if problem := r.checkEntry(h, e); problem != "" {
		return refuse("%s", problem)
	}
	if seconds := h.ModTime.Unix(); seconds > 0 {
		e.modified = time.Unix(seconds, 0)
	}
	e.mode = modeFor(fs.FileMode(h.Mode))
	if problem := r.checkLink(h, &e); problem != "" {
		return refuse("%s", problem)
	}
	if e.kind == regular {
		e.size = h.Size
	}
	e.listed = listed(e)
	r.list = append(r.list, e.listed)
	return e, r.count(h, e)
}

// listed returns the entry of the tree's list, without a digest.
func listed(e entry) *manifest.Entry {
	l := &manifest.Entry{Name: e.name, Size: e.size}
	switch e.kind {
	case regular:
		l.Kind = manifest.File
		if e.mode&0o111 != 0 {
			l.Kind = manifest.Executable
		}
		if !e.modified.IsZero() {
			l.Modified = e.modified.Unix()
		}
	case directory:
		l.Kind = manifest.Directory
	case symlink:
		l.Kind, l.Link = manifest.Symlink, e.link
	case hardlink:
		l.Kind, l.Link = manifest.Hardlink, e.link
	}
	return l
}

// tree returns the list of everything that was admitted.
func (r *rules) tree() *manifest.Manifest {
	m := &manifest.Manifest{Entries: make([]manifest.Entry, len(r.list))}
	for i, e := range r.list {
		m.Entries[i] = *e
	}
	m.Sort()
	return m
}

// cleanName returns the name relative to the release, or a sentence with its fault.
func (r *rules) cleanName(raw string) (name, problem string) {
	if len(raw) > maxPath {
		return "", fmt.Sprintf("its name is longer than %d bytes", maxPath)
	}
	if strings.ContainsRune(raw, 0) {
		return "", "its name holds a zero byte"
	}
	if strings.HasPrefix(raw, "/") {
		return "", "its name is absolute"
	}
	for part := range strings.SplitSeq(raw, "/") {
		if part == ".." {
			return "", "its name leaves the release"
		}
		if len(part) > maxName {
			return "", fmt.Sprintf("a part of its name is longer than %d bytes", maxName)
		}
	}
	name = path.Clean(raw)
	if depth := strings.Count(name, "/") + 1; depth > r.limits.Depth {
		return "", fmt.Sprintf("it lies %d directories deep, and %d are allowed", depth, r.limits.Depth)
	}
	return name, ""
}

func kindOf(h *tar.Header) kind {
	switch h.Typeflag {
	case tar.TypeReg:
		return regular
	case tar.TypeDir:
		return directory
	case tar.TypeSymlink:
		return symlink
	case tar.TypeLink:
		return hardlink
	}
	return skip
}

// checkEntry returns the reason why an entry is refused, apart from its name and link.
func (r *rules) checkEntry(h *tar.Header, e entry) string {
	switch {
	case e.kind == skip:
		return fmt.Sprintf("it is a %s, and only files, directories and links are allowed", typeName(h.Typeflag))
	case h.Mode&^(0o777|modeTypes) != 0 && e.kind != symlink:
		return fmt.Sprintf("its mode %04o has setuid, setgid or sticky bits", h.Mode&0o7777)
	case r.named[e.name]:
		return "the name comes twice"
	case r.kinds[e.name] == directory && e.kind != directory:
		return "other entries are below it"
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "SCHILY.xattr.") || strings.HasPrefix(key, "SCHILY.acl.") ||
			strings.HasPrefix(key, "LIBARCHIVE.") || strings.HasPrefix(key, "GNU.sparse.") {
			return fmt.Sprintf("it carries %s", key)
		}
	}
	return r.checkParents(e.name)
}

// checkParents refuses a name below a link or a file, and records the parents.
func (r *rules) checkParents(name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		switch k, known := r.kinds[dir]; {
		case known && k != directory:
			return fmt.Sprintf("it is below %q, which is not a directory", dir)
		case known:
			return ""
		}
		if len(r.kinds) >= r.limits.Files {
			return fmt.Sprintf("there are more than %d names, with the directories that they are in", r.limits.Files)
		}
		// Each new directory is recorded, and hashed, with its whole path.
		if r.texts += len(dir); r.texts > maxTexts {
			return fmt.Sprintf("the paths of the directories that the archive implies hold more than %d bytes", maxTexts)
		}
		r.kinds[dir] = directory
	}
	return ""
}

// checkLink checks the target of a link: a symbolic link must be relative, and a hard link must name an earlier file.
// It returns a sentence with the fault, or "".
func (r *rules) checkLink(h *tar.Header, e *entry) string {
	switch e.kind {
	case symlink:
		if h.Linkname == "" || strings.ContainsRune(h.Linkname, 0) {
			return "it is a symbolic link to nothing"
		}
		if len(h.Linkname) > maxPath {
			return fmt.Sprintf("it is a symbolic link to a name of more than %d bytes", maxPath)
		}
		if path.IsAbs(h.Linkname) {
			return fmt.Sprintf("it links to %q, and only relative links are allowed", h.Linkname)
		}
		e.link = h.Linkname
		r.links[e.name] = h.Linkname
	case hardlink:
		target, problem := r.cleanName(h.Linkname)
		if problem != "" || r.kinds[target] != regular {
			return fmt.Sprintf("it is a hard link to %q, which is not an earlier file", h.Linkname)
		}
		e.link = target
	}
	return ""
}

// count adds an entry to the summary, and refuses it if the archive then has more entries or bytes than the limits
// allow, or grows by a larger ratio.
func (r *rules) count(h *tar.Header, e entry) error {
	r.named[e.name] = true
	r.kinds[e.name] = e.kind
	if e.kind == hardlink {
		r.kinds[e.name] = regular
	}
	r.summary.Files++
	if e.kind == regular {
		r.summary.Bytes += h.Size
	}
	switch {
	case r.summary.Files > r.limits.Files:
		return &Hostile{Entry: h.Name, Rule: fmt.Sprintf("there are more than %d entries", r.limits.Files)}
	case r.summary.Bytes > r.limits.Bytes:
		return &Hostile{Entry: h.Name, Rule: fmt.Sprintf("the files hold more than %d bytes", r.limits.Bytes)}
	case r.growth.packed > 0 && r.growth.beyond(r.summary.Bytes):
		return r.growth.refusal(h.Name)
	}
	return nil
}

// weigh refuses texts that would need too much memory, before they are recorded.
func (r *rules) weigh(h *tar.Header) error {
	r.texts += len(h.Name) + len(h.Linkname)
	if r.texts > maxTexts {
		return &Hostile{Entry: h.Name, Rule: fmt.Sprintf("the names and links of the archive hold more than %d bytes",
			maxTexts)}
	}
	return nil
}

// modeFor returns a file's mode on disk: reproducible, and without write bits, since the content is immutable.
func modeFor(packed fs.FileMode) fs.FileMode {
	if packed&0o111 != 0 {
		return 0o555
	}
	return 0o444
}

func typeName(flag byte) string {
	switch flag {
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	case tar.TypeFifo:
		return "fifo"
	case tar.TypeGNUSparse:
		return "sparse file"
	}
	return fmt.Sprintf("entry of type %q", flag)
}
