package archive

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// rules decide which entries an archive may have, and how many.
type rules struct {
	limits limits
	dir    string            // where the targets of links must be; "" for anywhere
	seen   map[string]kind   // the kind of each name, including directories without an entry
	links  map[string]string // targets of symbolic links
	count  int
	names  int   // total length in bytes of names and links
	bytes  int64 // total size of files
}

func newRules(l limits, dir string) *rules {
	return &rules{limits: l, dir: dir, seen: map[string]kind{}, links: map[string]string{}}
}

// admit returns an error if no archive may have an entry, and otherwise records the entry.
func (r *rules) admit(e *entry) error {
	if err := r.countEntry(e); err != nil {
		return err
	}
	if why := r.badName(e); why != "" {
		return refused(e.raw, why)
	}
	if why := r.badKind(e); why != "" {
		return refused(e.raw, why)
	}
	for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
		k, known := r.seen[dir]
		if known && k != directory {
			return refused(e.raw, "it is below "+shown(dir)+", which is not a directory in the archive")
		}
		if known {
			break
		}
		r.seen[dir] = directory
	}
	r.seen[e.name] = e.kind
	if e.kind == symlink {
		r.links[e.name] = e.link
	}
	if e.kind == hardlink {
		r.seen[e.name] = file
	}
	return nil
}

// countEntry counts an entry and returns an error if the archive is beyond a limit.
func (r *rules) countEntry(e *entry) error {
	r.count++
	r.names += len(e.raw) + len(e.name) + len(e.link)
	if e.kind == file {
		r.bytes += e.size
	}
	switch {
	case r.names > maxNames:
		return refused(e.raw, fmt.Sprintf("the names in it hold more than %d bytes", maxNames))
	case e.size < 0 || r.bytes < 0 || r.bytes > r.limits.bytes:
		return beyond("max_bytes", "its files hold more than %d bytes", r.limits.bytes)
	}
	return r.limits.count(r.count)
}

func (r *rules) badName(e *entry) string {
	switch depth := strings.Count(e.name, "/") + 1; {
	case len(e.raw) > maxPath || len(e.name) > maxPath:
		return fmt.Sprintf("its name is longer than %d bytes", maxPath)
	case !filepath.IsLocal(e.raw) || !filepath.IsLocal(e.name) || strings.ContainsAny(e.name, "\x00\\"):
		return "its name leads out of the directory"
	case depth > r.limits.depth:
		return fmt.Sprintf("it is %d directories deep, and max_depth allows %d", depth, r.limits.depth)
	}
	for part := range strings.SplitSeq(e.name, "/") {
		if len(part) > maxName {
			return fmt.Sprintf("a part of its name is longer than %d bytes", maxName)
		}
	}
	return ""
}

// badKind returns why the kind or the link target of an entry conflicts with earlier entries, or "". A name may
// occur twice, as in archives that were appended to, but a directory must stay a directory: otherwise a name
// could denote two places.
func (r *rules) badKind(e *entry) string {
	before, twice := r.seen[e.name]
	switch {
	case twice && (before == directory) != (e.kind == directory):
		return "an earlier entry of that name is of another kind"
	case e.kind == hardlink && len(e.link) > maxPath, e.kind == symlink && len(e.link) > maxLink:
		return fmt.Sprintf("it links to a name of more than %d bytes", maxLink)
	case e.kind == symlink && (e.link == "" || strings.Contains(e.link, "\x00")):
		return "it is a link without a target"
	case e.kind == hardlink && e.link == e.name:
		return "it is a hard link to itself"
	}
	if k, ok := r.seen[e.link]; e.kind == hardlink && (!ok || k != file) {
		return "it is a hard link to a name that is not an earlier file of the archive"
	}
	return ""
}

// shown returns a name for a message, truncated if it is long.
func shown(name string) string {
	if len(name) > 200 {
		return name[:200] + "..."
	}
	return name
}

func refused(name, why string) error {
	return diag.Archive.Hint(fmt.Errorf("the archive is refused: entry %q: %s", shown(name), why),
		"get the archive again, or contact its author")
}
