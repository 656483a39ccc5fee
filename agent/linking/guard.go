package linking

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Guard finds out whether states change the links and directories that only deploys move.
type Guard struct {
	host   func(path string) string // the path on the host
	id     string
	places []place
}

// place is a link or directory as it was before states ran.
type place struct {
	path   string
	target string      // of a link
	info   os.FileInfo // of the directory, or of the one to which the link leads; nil for none
}

// Guard remembers the links and directories of the projects of pairs.
func (r *Run) Guard(pairs ...ledger.Pair) *Guard {
	g := &Guard{host: r.Host.Layout.Inside, id: r.ID}
	paths := []string{r.Host.Layout.Projects()}
	var links []string
	for _, pair := range pairs {
		for _, release := range pair.Releases() {
			p := r.Host.LayoutOf(release.Project)
			paths = append(paths, p.Dir, p.Releases(), p.Release(release.Dir()))
			links = append(links, filepath.Join(p.Dir, "next"), filepath.Join(p.Dir, "current"))
		}
	}
	if r.Host.Alone == "" {
		links = append(links, r.Host.Layout.BaseLink(), r.Host.Layout.ServiceLink())
	}
	for _, path := range append(paths, links...) {
		known := slices.ContainsFunc(g.places, func(p place) bool { return p.path == path })
		if is, err := placeAt(path); err == nil && !known && is.info != nil {
			g.places = append(g.places, is)
		}
	}
	return g
}

func placeAt(path string) (is place, err error) {
	is.path = path
	if is.target, err = walk.Target(path); err != nil && !walk.Nowhere(err) {
		return is, err
	}
	info, err := os.Stat(path)
	if err != nil && !walk.Nowhere(err) {
		return is, err
	}
	if err == nil && info.IsDir() {
		is.info = info
	}
	return is, nil
}

// Changed describes the first link or directory that is not as it was; "" for none. What cannot be looked at counts as
// unchanged.
func (g *Guard) Changed() string {
	for _, was := range g.places {
		is, err := placeAt(was.path)
		if err != nil || is.target == was.target && is.info != nil && (was.target != "" || os.SameFile(is.info, was.info)) {
			continue
		}
		at := g.host(was.path)
		info, err := os.Lstat(was.path)
		switch {
		case walk.Nowhere(err):
			return at + " was removed"
		case err != nil:
			continue
		case was.target != "" && is.target == "":
			return fmt.Sprintf("%s was replaced by %s", at, walk.TypeName(info.Mode().Type()))
		case is.target != was.target:
			return fmt.Sprintf("%s was made a link to %s", at, is.target)
		case is.info == nil && was.target != "":
			return at + " leads nowhere"
		}
		return fmt.Sprintf("%s was replaced by %s", at, walk.TypeName(info.Mode().Type()))
	}
	return ""
}

// PutBack restores the links that are not as they were, where their directories are still there. It sets aside what is
// in their places.
func (g *Guard) PutBack() error {
	var errs []error
	for _, was := range g.places {
		is, err := placeAt(was.path)
		above, aboveErr := walk.Directory(filepath.Dir(was.path))
		switch {
		case err != nil || aboveErr != nil:
			errs = append(errs, err, aboveErr)
			continue
		case was.target == "" || is.target == was.target || !above:
			continue
		case is.target == "" && is.info != nil:
			errs = append(errs, durable.Rename(was.path, was.path+layout.DamagedMark+g.id))
		}
		errs = append(errs, durable.Symlink(was.target, was.path))
	}
	return errors.Join(errs...)
}

// Relink points the links of a pair at it, after its rollback has restored or fetched what they lead to.
func (r *Run) Relink(pair ledger.Pair) error {
	links, err := r.Of(pair)
	if err != nil {
		return err
	}
	for _, release := range pair.Releases() {
		p := r.Host.LayoutOf(release.Project)
		if r.Host.Held().Has(release) {
			err = errors.Join(err, link.Of(p).Restore(links[release.Project]))
		}
	}
	if r.namesLead(pair) || r.Host.Alone != "" {
		return err
	}
	if err = errors.Join(err, r.clearNames()); err == nil && pair.Base != nil {
		err = link.Name(r.Host.Layout.BaseLink(), r.Host.LayoutOf(pair.Base.Project))
	}
	if err == nil && !pair.BaseAlone() {
		err = link.Name(r.Host.Layout.ServiceLink(), r.Host.LayoutOf(pair.Service.Project))
	}
	return err
}
