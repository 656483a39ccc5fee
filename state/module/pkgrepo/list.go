package pkgrepo

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ListRepositories returns the repositories of the host's package manager: for apt lists of entries by URI, for
// dnf, yum and zypper the settings and the file by name.
func ListRepositories(h *host.Host) (*value.Map, error) {
	switch h.Packages.Family() {
	case "apt":
		return listApt(h)
	case "dnf", "yum", "zypper":
		return listSections(h)
	}
	return value.NewMap(), nil
}

func listApt(h *host.Host) (*value.Map, error) {
	lists, err := readLists(h)
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for _, f := range lists.files {
		for _, e := range f.entries() {
			described := value.NewMap("file", f.path)
			described.Update(e.fields())
			of, ok := all.Value(e.uri).(*value.List)
			if !ok {
				of = value.NewList()
				all.Set(e.uri, of)
			}
			of.Append(described)
		}
	}
	return all, nil
}

// entries returns the repositories of a file, in either format.
func (f *listFile) entries() []entry {
	all := slices.Clone(f.foreign)
	for _, ln := range f.lines {
		if ln.entry != nil {
			all = append(all, *ln.entry)
		}
	}
	return all
}

func listSections(h *host.Host) (*value.Map, error) {
	all := value.NewMap()
	files, err := repoFiles(h, rpmRepoDir(h), ".repo")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := readRepoFile(h, file)
		if err != nil {
			return nil, err
		}
		sections := parseSections(text, false)
		for _, name := range sections.names() {
			described := sections.values(name)
			described.Set("file", file)
			all.Set(strings.TrimSpace(name), described)
		}
	}
	return all, nil
}
