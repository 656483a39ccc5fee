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
		case is.target != was.target && is.target != "":
			return fmt.Sprintf("%s was made a link to %s", at, is.target)
		case is.info == nil && was.target != "":
			return at + " leads nowhere"
		}
		return fmt.Sprintf("%s was replaced by %s", at, walk.TypeName(info.Mode().Type()))
	}
	return ""
}

// PutBack restores the links that are not as they were, in directories that are still the same. It sets aside what is
// in their places, and returns the names that this has got.
func (g *Guard) PutBack() (aside []string, err error) {
	var errs []error
	for _, was := range g.places {
		name, err := g.putBack(was)
		if errs = append(errs, err); name != "" {
			aside = append(aside, name)
		}
	}
	return aside, errors.Join(errs...)
}

func (g *Guard) putBack(was place) (aside string, err error) {
	is, err := placeAt(was.path)
	if err != nil || was.target == "" || is.target == was.target || !g.kept(filepath.Dir(was.path)) {
		return "", err
	}
	found, err := walk.Named(was.path)
	if err != nil {
		return "", err
	}
	if found && is.target == "" {
		name := was.path + layout.DamagedMark + g.id
		if err := durable.Rename(was.path, name); err != nil {
			return "", err
		}
		aside = g.host(name)
	}
	return aside, durable.Symlink(was.target, was.path)
}

// kept reports whether a directory, and each of the places above it, is the one that it was before states ran: another
// one may be a user's.
func (g *Guard) kept(dir string) bool {
	is, err := placeAt(dir)
	if err != nil || is.info == nil {
		return false
	}
	i := slices.IndexFunc(g.places, func(p place) bool { return p.path == dir })
	if i < 0 {
		return true
	}
	return is.target == g.places[i].target && os.SameFile(is.info, g.places[i].info) && g.kept(filepath.Dir(dir))
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
