package pages

import (
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Comparison has the differences between two releases, as far as the store has the data.
type Comparison struct {
	Old, New                artifact.Release
	Added, Removed, Changed []string // files; empty if Files is false
	Files                   bool     // the store has the lists of files of both
	Packages                []string // descriptions of the differences
	Listed                  bool     // the store has the packages of both
}

// mostCompared is how many of the newest releases of a project are compared with the previous one.
const mostCompared = 10

// pair holds the versions of two releases of a project.
type pair struct{ project, older, newer string }

func (p pair) name() string { return "release/" + p.project + "/" + p.older + ".." + p.newer + ".html" }

// comparisons starts writing the pages that compare releases: each of the newest with the previous one, and the two of
// each move of a channel.
func (w *writer) comparisons() map[string]bool {
	done := map[string]bool{}
	if w.site.Compare == nil {
		return done
	}
	for _, p := range w.pairs() {
		if done[p.name()] || len(p.older)+len(p.newer) > 200 || p.older == p.newer {
			continue
		}
		done[p.name()] = true
		w.group.Go(func() error {
			c, err := w.site.Compare(w.ctx, p.project, p.older, p.newer)
			if err != nil {
				return err
			}
			return w.page(w.ctx, p.name(), "release", w.comparison(p, c))
		})
	}
	return done
}

func (w *writer) pairs() (all []pair) {
	for _, l := range w.site.Listings {
		known := map[string]bool{}
		releases := slices.Clone(l.Releases)
		slices.SortFunc(releases, func(a, b artifact.Release) int { return artifact.CompareVersions(b.Version, a.Version) })
		for i, r := range releases {
			known[r.Version] = true
			if i+1 < len(releases) && i < mostCompared {
				all = append(all, pair{l.Project, releases[i+1].Version, r.Version})
			}
		}
		for _, h := range w.site.Histories[l.Project] {
			for i, m := range h.Moves[:min(len(h.Moves), mostMoves)] {
				if before := h.before(i); known[m.Version] && known[before] {
					all = append(all, pair{l.Project, before, m.Version})
				}
			}
		}
	}
	return all
}

// compares returns the relative URL from a project's page to the page that compares two of its releases; "" if there is
// none.
func (w *writer) compares(project, older, newer string) string {
	if name := (pair{project, older, newer}).name(); w.compared[name] {
		return "../../" + name
	}
	return ""
}

type comparisonPage struct {
	common
	Project, Old, New, OldSize, NewSize, Files, Unknown string
	Lists                                               []list
}

type list struct {
	Name    string
	N, More int
	Items   []string
}

// mostListed bounds the files in a list of a page.
const mostListed = 500

func (w *writer) comparison(p pair, c Comparison) comparisonPage {
	title := fmt.Sprintf("%s %s against %s", p.project, p.newer, p.older)
	page := comparisonPage{
		common: w.common(title+" - Fleet", "../../", step{p.project, "../../project/" + p.project + "/index.html"},
			step{Text: p.newer + " against " + p.older}),
		Project: p.project, Old: p.older, New: p.newer, OldSize: diag.Size(c.Old.Length), NewSize: diag.Size(c.New.Length),
		Files: "not known: the artifacts are too large to be read for this page",
	}
	if c.Files {
		page.Files = fmt.Sprintf("%d changed, %d added, %d removed", len(c.Changed), len(c.Added), len(c.Removed))
	}
	for _, l := range []struct {
		name  string
		items []string
	}{{"Changed files", c.Changed}, {"Added files", c.Added}, {"Removed files", c.Removed}, {"Packages", c.Packages}} {
		if len(l.items) > 0 {
			first := l.items[:min(len(l.items), mostListed)]
			shows := list{l.name, len(l.items), len(l.items) - len(first), nil}
			for _, item := range first {
				shows.Items = append(shows.Items, name(item))
			}
			page.Lists = append(page.Lists, shows)
		}
	}
	if !c.Listed {
		page.Unknown = "The releases have no lists of packages; corpus build --sbom makes them."
	} else if len(c.Packages) == 0 {
		page.Unknown = "Both have the same packages."
	}
	return page
}
