package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages"
)

// Packages restores the former versions of packages, with one transaction for each kind of change. lost has the
// packages that could not be restored, with the reasons.
func (p Putter) Packages(ctx context.Context, want map[string]Image) (lost map[string]error) {
	lost = map[string]error{}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	var remove, purge, install []host.Wanted
	for _, name := range names {
		switch version := want[name].Part("version").Text; {
		case version != "":
			install = append(install, host.Wanted{Name: name, Version: version})
		case want[name].Part("left configuration of").Text != "":
			remove = append(remove, host.Wanted{Name: name})
		default:
			purge = append(purge, host.Wanted{Name: name})
		}
	}
	install = p.offered(ctx, install, lost)
	// A downgrade may need a removal first, or a removal a downgrade, so both are tried twice.
	failed := map[string]error{}
	for range 2 {
		clear(failed)
		p.order(ctx, host.Transaction{Action: host.InstallPackages, Packages: p.pending(install, false)}, failed)
		p.order(ctx, host.Transaction{Action: host.RemovePackages, Packages: p.pending(remove, false)}, failed)
		p.order(ctx, host.Transaction{Action: host.PurgePackages, Packages: p.pending(purge, true)}, failed)
		if len(failed) == 0 {
			break
		}
	}
	p.removeSingly(ctx, host.RemovePackages, remove, failed)
	p.removeSingly(ctx, host.PurgePackages, purge, failed)
	maps.Copy(lost, failed)
	for _, name := range names {
		if err := p.hold(ctx, name, want[name].Part("hold").Text != ""); err != nil && lost[name] == nil {
			lost[name] = err
		}
	}
	return lost
}

// removeSingly removes one by one what is left of a transaction that failed, since a package whose removal script
// refuses, or that others need, does not prevent the removal of the others. A package may be removable only after
// another one.
func (p Putter) removeSingly(ctx context.Context, action host.PackageAction, wanted []host.Wanted,
	failed map[string]error) {
	purge := action == host.PurgePackages
	left := p.pending(wanted, purge)
	for before := len(left) + 1; len(wanted) > 1 && len(left) < before && ctx.Err() == nil; {
		before = len(left)
		for _, w := range left {
			delete(failed, w.Name)
			p.order(ctx, host.Transaction{Action: action, Packages: []host.Wanted{w}}, failed)
		}
		left = p.pending(left, purge)
	}
	for _, w := range wanted {
		if !slices.Contains(left, w) {
			delete(failed, w.Name)
		}
	}
}

// Finish completes a change of packages that a power failure interrupted; until then dpkg does nothing else, and
// packages are in between versions. It leaves a change of a running process alone. If dpkg fails, the next transaction
// reports why.
func Finish(ctx context.Context, h *host.Host) {
	if v, err := h.Packages.Installed(); err == nil && (v.Interrupted || len(v.Damaged()) > 0) {
		_ = packages.Settle(ctx, h)
	}
}

// offered returns the packages whose wanted version a repository has, and records the others in lost. It refreshes the
// indexes if that may help.
func (p Putter) offered(ctx context.Context, wanted []host.Wanted, lost map[string]error) []host.Wanted {
	wanted = p.pending(wanted, false)
	missing := func() []host.Wanted {
		var names []string
		for _, w := range wanted {
			names = append(names, w.Name)
		}
		offers, err := p.Host.Packages.Offers(ctx, names, "")
		if err != nil {
			return wanted
		}
		return structsort.Without(wanted, func(w host.Wanted) bool {
			return slices.Contains(offers[w.Name].Versions, w.Version)
		})
	}
	gone := missing()
	if len(gone) > 0 {
		if _, err := p.Host.Packages.Refresh(ctx); err == nil {
			gone = missing()
		}
	}
	for _, w := range gone {
		lost[w.Name] = Stays(fmt.Sprintf("no repository of this host has version %s any more", w.Version))
	}
	return structsort.Without(wanted, func(w host.Wanted) bool { return lost[w.Name] != nil })
}

// pending returns the packages that are not in the wanted state yet.
func (p Putter) pending(wanted []host.Wanted, purge bool) []host.Wanted {
	v, err := p.Host.Packages.Installed()
	if err != nil {
		return wanted
	}
	return structsort.Without(wanted, func(w host.Wanted) bool {
		return v.Version(w.Name) == w.Version && v.Partial(w.Name) == "" && (!purge || v.Leftover(w.Name) == "")
	})
}

func (p Putter) order(ctx context.Context, t host.Transaction, lost map[string]error) {
	if len(t.Packages) == 0 {
		return
	}
	no := false
	t.Recommends = &no
	if t.Action != host.InstallPackages {
		t.Recommends = nil
	}
	err := p.alone(ctx, t)
	if err == nil {
		err = p.Host.Packages.Do(ctx, t)
	}
	if err != nil {
		for _, w := range t.Packages {
			lost[w.Name] = errors.Join(lost[w.Name], err)
		}
	}
}

// alone returns an error for a transaction that would remove packages which it does not name.
func (p Putter) alone(ctx context.Context, t host.Transaction) error {
	changes, err := p.Host.Packages.Plan(ctx, t)
	if err != nil {
		return err
	}
	for _, c := range changes {
		named := slices.ContainsFunc(t.Packages, func(w host.Wanted) bool { return w.Name == c.Name })
		if c.New == "" && !named && !c.Purged {
			return Stays(c.Name + " would have to go with it")
		}
	}
	return nil
}

func (p Putter) hold(ctx context.Context, name string, held bool) error {
	v, err := p.Host.Packages.Installed()
	if err != nil || v.Held(name) == held {
		return err
	}
	return p.Host.Packages.Hold(ctx, []string{name}, held)
}
