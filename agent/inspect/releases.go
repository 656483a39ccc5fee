package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Known is a release that this host has, or does not deploy.
type Known struct {
	artifact.Release
	Dir         string   `json:"dir,omitempty"`         // the directory of its files; "" if they are not on this host
	Links       []string `json:"links,omitempty"`       // the links that lead to it: next, current, previous
	Deployed    bool     `json:"deployed,omitempty"`    // the host runs it
	Previous    bool     `json:"previous,omitempty"`    // a rollback deploys it
	Quarantined string   `json:"quarantined,omitempty"` // why it is in quarantine
	Withdrawn   string   `json:"withdrawn,omitempty"`   // why its project withdrew it
	Held        string   `json:"held,omitempty"`        // why it waits: the host is held
}

// Marks returns the special states of the release, such as quarantined, as words and sentences.
func (k Known) Marks() []string {
	var marks []string
	mark := func(is bool, text string) {
		if is {
			marks = append(marks, text)
		}
	}
	mark(k.Deployed, "deployed")
	for _, name := range k.Links { // the link previous stays where a deploy replaced only the release of another project
		mark(!k.Deployed && name != "previous", name)
	}
	mark(k.Previous, "previous")
	mark(k.Quarantined != "", "quarantined: "+k.Quarantined)
	mark(k.Withdrawn != "", "withdrawn: "+k.Withdrawn)
	mark(k.Held != "", "held: "+k.Held)
	mark(k.Dir == "", "not on this host")
	return marks
}

// Releases returns the releases of base and of the service that are on this host, the newest first, and those that it
// does not deploy.
func (h *Host) Releases() ([]Known, error) {
	list, err := h.knownReleases()
	return list, h.forLook(err)
}

func (h *Host) knownReleases() ([]Known, error) {
	if err := h.CheckPlace(h.Layout.Projects()); err != nil {
		return nil, err
	}
	book, err := h.ReadLedger()
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	known := ReleasesOf(book)
	for _, b := range book.Bad {
		known = append(known, ledger.Release(b))
	}
	list, target := []Known{}, h.LastKeptOf(book)
	for _, project := range records.ProjectsIn(book) {
		more, err := h.onDisk(project, book, known)
		if err != nil {
			return nil, err
		}
		for _, k := range more {
			k.Previous = !k.Deployed && target != nil && target.Has(k.Release)
			list = append(list, k)
		}
	}
	named, err := h.LastNamed()
	if err != nil {
		return nil, err
	}
	return keptBack(list, book, named), nil
}

// onDisk returns the releases of a project whose files are on this host. known has descriptions of releases.
func (h *Host) onDisk(project string, book *ledger.Ledger, known []artifact.Release) ([]Known, error) {
	p := h.LayoutOf(project)
	dirs, err := fetch.NewestFirst(p.Releases())
	if err != nil {
		return nil, err
	}
	links, err := link.Of(p).Read()
	if err = records.IgnoreNoLink(err); err != nil {
		return nil, err
	}
	var list []Known
	for _, dir := range dirs {
		k := Known{Release: releaseIn(project, dir, known), Dir: h.Layout.Inside(p.Release(dir)),
			Links: linksTo(dir, links)}
		k.Deployed = book.Runs() != nil && slices.ContainsFunc(book.Runs().Releases(), func(r artifact.Release) bool {
			return r.Project == project && r.Dir() == dir
		})
		list = append(list, k)
	}
	return list, nil
}

// linksTo returns the names of the links that lead to a directory of a release.
func linksTo(dir string, links link.Set) (names []string) {
	for _, l := range []struct{ name, target string }{{"next", links.Next}, {"current", links.Current},
		{"previous", links.Previous}} {
		if l.target == dir {
			names = append(names, l.name)
		}
	}
	return names
}

// releaseIn returns the release in a directory: one of known, or one that is parsed from the name.
func releaseIn(project, dir string, known []artifact.Release) artifact.Release {
	for _, r := range known {
		if r.Project == project && r.Dir() == dir {
			return r
		}
	}
	version, digest := dir, artifact.Digest("")
	if at := strings.LastIndex(dir, "-"); at > 0 {
		version, digest = dir[:at], artifact.PartOfDigest(dir[at+1:])
	}
	return artifact.Release{Project: project, Version: version, Digest: digest, Format: artifact.TarZst}
}

// keptBack marks the releases of a list that are in quarantine, are withdrawn, or wait since the host is held, and adds
// those that are not on this host. named is the pair that the channels named last; nil if unknown.
func keptBack(list []Known, book *ledger.Ledger, named *ledger.Pair) []Known {
	of := func(r artifact.Release) *Known {
		i := slices.IndexFunc(list, func(k Known) bool { return k.Project == r.Project && k.Release.Dir() == r.Dir() })
		if i < 0 {
			list, i = append(list, Known{Release: r}), len(list)
		}
		return &list[i]
	}
	for _, b := range book.Bad {
		of(ledger.Release(b)).Quarantined = fmt.Sprintf("%s (run %s)", b.Reason, b.Run)
	}
	for _, w := range book.Withdrawn {
		of(w.Release).Withdrawn = w.When()
	}
	if book.Hold == nil || named == nil {
		return list
	}
	for _, r := range named.Releases() {
		if book.Runs() == nil || !book.Runs().Has(r) {
			of(r).Held = strings.TrimSpace(fmt.Sprintf("since %s %s", diag.Stamp(book.Hold.Since), book.Hold.Reason))
		}
	}
	return list
}
