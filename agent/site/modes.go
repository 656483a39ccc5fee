package site

import (
	"fmt"
	"os"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// ReleaseMode is the mode of the directory of a project's releases and of the directory of each release. Other users
// need access, since services run as other users.
const ReleaseMode = 0o755

// Passages returns the directories that must have ReleaseMode, the outer one first.
func (s *Site) Passages(release artifact.Release) []string {
	p := s.LayoutOf(release.Project)
	return []string{p.Releases(), p.Release(release.Dir())}
}

// Impassable returns the Passages of a release that have another mode than ReleaseMode.
func (s *Site) Impassable(release artifact.Release) (found []manifest.Change) {
	if release.Local == trust.ByEditable {
		return nil
	}
	for _, name := range s.Passages(release) {
		info, err := os.Stat(name)
		exists, err := walk.Found(err)
		if err != nil {
			found = append(found, manifest.Change{Name: s.Layout.Inside(name), What: "cannot be looked at: " + err.Error()})
		}
		if !exists || info.Mode().Perm() == ReleaseMode {
			continue
		}
		found = append(found, manifest.Change{Name: s.Layout.Inside(name),
			What: fmt.Sprintf("has mode %04o, not %04o", info.Mode().Perm(), ReleaseMode)})
	}
	return found
}

// ImpassableBeside is Impassable without the release's own directory if found already contains it.
func (s *Site) ImpassableBeside(release artifact.Release, found []manifest.Change) []manifest.Change {
	own := s.Layout.Inside(s.LayoutOf(release.Project).Release(release.Dir()))
	return structsort.Without(s.Impassable(release), func(c manifest.Change) bool {
		return c.Name == own && slices.ContainsFunc(found, func(f manifest.Change) bool { return f.Name == "." })
	})
}
