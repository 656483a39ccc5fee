package statetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Plan returns the changes that a transaction would make.
func (p *Packages) Plan(_ context.Context, t host.Transaction) ([]host.PackageChange, error) {
	v, err := p.Installed()
	if err != nil {
		return nil, err
	}
	plan := map[string]host.PackageChange{}
	switch t.Action {
	case host.InstallPackages:
		err = p.planInstall(v, t, plan)
	case host.RemovePackages, host.PurgePackages:
		p.planRemove(v, t, plan)
	default:
		for name, e := range p.repository() {
			if old := v.Version(name); old != "" && p.Compare(old, e.versions[0]) < 0 {
				plan[name] = host.PackageChange{Name: name, Old: old, New: e.versions[0]}
			}
		}
	}
	changes := slices.Collect(maps.Values(plan))
	slices.SortFunc(changes, func(a, b host.PackageChange) int { return cmp.Compare(a.Name, b.Name) })
	return changes, err
}

func (p *Packages) planInstall(v *host.Inventory, t host.Transaction, plan map[string]host.PackageChange) error {
	for _, w := range t.Packages {
		if err := p.planOne(v, t, w, plan); err != nil {
			return err
		}
	}
	return nil
}

func (p *Packages) planOne(v *host.Inventory, t host.Transaction, w host.Wanted,
	plan map[string]host.PackageChange) error {
	old, offered := v.Version(w.Name), p.repository()
	name, version := w.Name, w.Version
	e, ok := offered[w.Name]
	for provider, other := range offered {
		if other.words["provides"] == w.Name {
			name, e, ok = provider, other, true
		}
	}
	switch {
	case w.File != "":
		f, err := p.h.Files.Open(w.File)
		if err != nil {
			return err
		}
		defer f.Close()
		described, err := p.Describe(f)
		if err != nil {
			return err
		}
		version = described.Version
	case !ok:
		return diag.Packages.Hint(fmt.Errorf("the repositories have no package %s", w.Name), "%s",
			diag.DidYouMean(w.Name, slices.Sorted(maps.Keys(offered))))
	case version == "":
		version = e.versions[0]
	case !slices.Contains(e.versions, version):
		return fmt.Errorf("the repositories have no version %s of package %s", version, w.Name)
	}
	if t.OnlyUpgrade && old == "" || old == version && !t.Reinstall {
		return nil
	}
	plan[name] = host.PackageChange{Name: name, Old: old, New: version}
	if needs := e.words["needs"]; needs != "" && v.Version(needs) == "" {
		return p.planOne(v, t, host.Wanted{Name: needs}, plan)
	}
	return nil
}

func (p *Packages) planRemove(v *host.Inventory, t host.Transaction, plan map[string]host.PackageChange) {
	for _, w := range t.Packages {
		if old := v.Version(w.Name); old != "" {
			plan[w.Name] = host.PackageChange{Name: w.Name, Old: old}
		} else if old := v.Leftover(w.Name); old != "" && t.Action == host.PurgePackages {
			plan[w.Name] = host.PackageChange{Name: w.Name, Old: old, Purged: true}
		}
		for name, e := range p.repository() {
			if old := v.Version(name); old != "" && e.words["needs"] == w.Name {
				plan[name] = host.PackageChange{Name: name, Old: old}
			}
		}
	}
}

// Do makes the changes of Plan. It stops at a package whose repository line has fails=: that and later packages are not
// installed.
func (p *Packages) Do(ctx context.Context, t host.Transaction) error {
	changes, err := p.Plan(ctx, t)
	if err != nil {
		return err
	}
	p.log(strings.TrimSpace(verb(t) + " " + words(t)))
	if t.DownloadOnly {
		for _, c := range changes {
			p.put("/downloaded-"+c.Name, c.New)
		}
		return nil
	}
	for _, c := range changes {
		if p.repository()[c.Name].words["fails"] != "" {
			return fmt.Errorf("the script of package %s failed", c.Name)
		}
		p.change(c)
	}
	return nil
}

func verb(t host.Transaction) string {
	if t.DownloadOnly {
		return "download"
	}
	return []string{"install", "remove", "purge", "upgrade", "full-upgrade"}[t.Action]
}

func words(t host.Transaction) string {
	var list []string
	for _, w := range t.Packages {
		word := w.Name
		if w.Version != "" {
			word += "=" + w.Version
		}
		if w.File != "" {
			word += " from a file"
		}
		list = append(list, word)
	}
	return strings.Join(list, " ")
}

func (p *Packages) change(c host.PackageChange) {
	entries := p.read("/packages")
	held := ""
	for _, e := range entries {
		if e.name == c.Name {
			held = e.words["held"]
		}
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.name == c.Name })
	if c.New != "" {
		entries = append(entries, entry{name: c.Name, versions: []string{c.New}, words: map[string]string{"held": held}})
	}
	p.write(entries)
}
