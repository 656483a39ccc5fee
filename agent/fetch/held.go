package fetch

import (
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Held gives access to the releases that a host holds, unpacked, and to the lists of their files.
type Held struct {
	Layout layout.Layout
	Lists  *Lists // nil reads a list each time
}

// List returns the list of the unpacked files of a release, which must not be modified. It returns nil if there is no
// list, or if the file is damaged, which `verify` reports.
func (h Held) List(release artifact.Release) (*manifest.Manifest, error) {
	list, _, err := h.Lists.Of(h.Layout.Tree(release.Project, release.Dir()))
	return list, err
}

// Has reports whether each release can be used now: it is unpacked and can be read. It is for the choice among several
// releases; use Holds to decide whether a release is missing.
func (h Held) Has(releases ...artifact.Release) bool {
	held, err := h.Holds(releases...)
	return held && err == nil
}

// Holds reports whether each release is unpacked on this host. It returns false for a directory that has none of the
// listed entries, such as an empty one, which the repair of a filesystem may leave. A directory that cannot be read is
// an error. A path that is not a directory, such as a link that leads nowhere, counts as missing; it is set aside when
// the release is fetched.
func (h Held) Holds(releases ...artifact.Release) (bool, error) {
	for _, release := range releases {
		if held, err := h.holds(release); err != nil || !held {
			return false, err
		}
	}
	return true, nil
}

func (h Held) holds(release artifact.Release) (bool, error) {
	dir, err := walk.OpenDir(h.Layout.Project(release.Project).Release(release.Dir()))
	if err != nil && walk.Nowhere(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil && !walk.Nowhere(err) {
		return false, fmt.Errorf("listing %s: %w", dir.Name(), err)
	}
	if len(names) == 0 {
		return false, nil
	}
	list, err := h.List(release)
	if err != nil {
		return false, err
	}
	return list == nil || len(list.Entries) == 0 || slices.ContainsFunc(list.Entries, func(e manifest.Entry) bool {
		return slices.Contains(names, e.Name)
	}), nil
}
