package archive

import (
	"fmt"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
)

// complete returns an error if a link leads out of the directory. It is called when all entries are known. The author
// of an archive is not the author of the states: through such a link, a later state with a path below the directory
// would write anywhere as root.
func (r *rules) complete() error {
	if r.dir == "" {
		return nil
	}
	isDir := func(name string) bool { return r.seen[name] == directory }
	for _, name := range slices.Sorted(maps.Keys(r.links)) {
		if r.seen[name] == symlink && descent.LeadsOut(r.dir, name, r.links[name], isDir) {
			return diag.Archive.Hint(fmt.Errorf("the archive is refused: entry %q: it links to %s, which is not below %s",
				shown(name), shown(r.links[name]), r.dir),
				"leave it out with options: --exclude, or set allow_outside_links: True if later states may write and "+
					"read through it")
		}
	}
	return nil
}

// linksBelow returns the directory that links of the archive must not leave, "" if they may lead anywhere.
func (x *extracted) linksBelow() string {
	if x.AllowOutsideLinks || x.dir == "/" {
		return ""
	}
	return x.dir
}
