package statetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Packages is a package manager that keeps its data in files of the case's tree, so that the tree of a case defines the
// installed and the available packages:
//
//	/packages      the packages on the host: "foo 1.0", "foo 1.0 held", "old 0.9 removed"
//	/repository    the packages that can be installed, with their versions, the newest first: "foo 2.0 1.0",
//	               "bar 1.0 needs=foo provides=virtual"
//	/upstream      the content that a refresh copies to /repository; without it, a refresh finds nothing new
//	/fresh         exists after a refresh
//	/family        the name of the package manager; without it, apt
//	/packages.log  the actions so far: "refresh", "install foo=1.0 bar", "hold foo"
//
// A package file has the content "foo 1.0".
type Packages struct {
	host.Packages // for the order of versions
	h             *Host
}

// UsePackages sets the package manager of a host.
func UsePackages(h *Host) *Packages {
	p := &Packages{Packages: h.Packages, h: h}
	h.Packages = p
	return p
}

// entry is a line of /packages or /repository.
type entry struct {
	name     string
	versions []string
	words    map[string]string
}

func (p *Packages) read(file string) []entry {
	data, err := p.h.Files.ReadFile(file)
	if err != nil {
		return nil
	}
	var entries []entry
	for line := range strings.SplitSeq(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		e := entry{name: f[0], words: map[string]string{}}
		for _, word := range f[1:] {
			if key, v, ok := strings.Cut(word, "="); ok || word == "held" || word == "removed" {
				e.words[key] = cmp.Or(v, "yes")
			} else {
				e.versions = append(e.versions, word)
			}
		}
		entries = append(entries, e)
	}
	return entries
}

func (p *Packages) write(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	var text strings.Builder
	for _, e := range entries {
		text.WriteString(strings.Join(append([]string{e.name}, e.versions...), " "))
		for _, word := range []string{"held", "removed"} {
			if e.words[word] != "" {
				text.WriteString(" " + word)
			}
		}
		text.WriteString("\n")
	}
	p.put("/packages", text.String())
}

func (p *Packages) put(file, text string) {
	err := p.h.Files.Write(file, host.NewFile{Content: strings.NewReader(text), UID: -1, GID: -1})
	if err != nil {
		panic(err) // the test has created the directory
	}
}

func (p *Packages) log(line string) {
	old, _ := p.h.Files.ReadFile("/packages.log") // none before the first line
	p.put("/packages.log", string(old)+line+"\n")
}

// Allowed allows everything.
func (p *Packages) Allowed(string) error { return nil }

// Family returns the name in /family, or apt.
func (p *Packages) Family() string {
	if name, err := p.h.Files.ReadFile("/family"); err == nil {
		return strings.TrimSpace(string(name))
	}
	return "apt"
}

// Describe reads a package file.
func (p *Packages) Describe(file io.Reader) (host.Package, error) {
	data, err := io.ReadAll(file)
	name, version, ok := strings.Cut(strings.TrimSpace(string(data)), " ")
	if err != nil || !ok {
		return host.Package{}, errors.New("this is not a package file")
	}
	return host.Package{Name: name, Version: version}, nil
}

// Installed returns the packages in /packages.
func (p *Packages) Installed() (*host.Inventory, error) {
	var packages []host.Package
	offered := p.repository()
	for _, e := range p.read("/packages") {
		one := host.Package{Name: e.name, Held: e.words["held"] != "", State: host.InstalledPackage}
		if len(e.versions) == 0 {
			one.State = host.NotInstalled
		} else {
			one.Version = e.versions[0]
		}
		if e.words["removed"] != "" {
			one.State = host.ConfigFiles
		}
		if virtual := offered[e.name].words["provides"]; virtual != "" {
			one.Provides = []string{virtual}
		}
		packages = append(packages, one)
	}
	return host.NewInventory("amd64", packages), nil
}

func (p *Packages) repository() map[string]entry {
	offered := map[string]entry{}
	for _, e := range p.read("/repository") {
		offered[e.name] = e
	}
	return offered
}

// Offers returns the packages in /repository that have one of the names.
func (p *Packages) Offers(_ context.Context, names []string, _ string) (map[string]host.Offer, error) {
	offers := map[string]host.Offer{}
	for name, e := range p.repository() {
		if slices.Contains(names, name) {
			offers[name] = host.Offer{Candidate: e.versions[0], Versions: e.versions}
		}
	}
	return offers, nil
}

// Names returns the names of the packages in /repository.
func (p *Packages) Names(context.Context) ([]string, error) {
	return slices.Sorted(maps.Keys(p.repository())), nil
}

// Fresh reports whether /fresh exists.
func (p *Packages) Fresh(time.Duration) bool {
	_, err := p.h.Files.Lstat("/fresh")
	return err == nil
}

// Refresh copies /upstream to /repository.
func (p *Packages) Refresh(context.Context) ([]string, error) {
	p.log("refresh")
	if text, err := p.h.Files.ReadFile("/upstream"); err == nil {
		p.put("/repository", string(text))
	}
	p.put("/fresh", "")
	return nil, nil
}

// Hold writes holds to /packages.
func (p *Packages) Hold(_ context.Context, names []string, held bool) error {
	entries := p.read("/packages")
	for _, name := range names {
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
		if i < 0 {
			return fmt.Errorf("there is no package %s to put on hold", name)
		}
		entries[i].words["held"] = map[bool]string{true: "yes"}[held]
		p.log(map[bool]string{true: "hold ", false: "unhold "}[held] + name)
	}
	if len(names) > 0 {
		p.write(entries)
	}
	return nil
}

// Cached returns the downloaded packages.
func (p *Packages) Cached() ([]host.Package, error) {
	names, err := p.h.Files.ReadDir("/")
	var packages []host.Package
	for _, file := range names {
		if name, ok := strings.CutPrefix(file, "downloaded-"); ok {
			version, _ := p.h.Files.ReadFile("/" + file)
			packages = append(packages, host.Package{Name: name, Version: string(version)})
		}
	}
	return packages, err
}
