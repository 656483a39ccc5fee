package pkg

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// removed implements pkg.removed and pkg.purged. The latter also removes the configuration files that a removal
// leaves.
type removed struct {
	selection
	purge bool
}

func (r *removed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Packages.Allowed("removing packages"); err != nil {
		return module.Diff{}, err
	}
	if r.none() {
		return module.Diff{Comment: "there are no packages to remove"}, nil
	}
	targets, err := r.targets(h)
	if err != nil {
		return module.Diff{}, err
	}
	if len(targets) == 0 {
		return module.Diff{Comment: "none of them is installed"}, nil
	}
	if host.Decides(ctx) {
		return module.Diff{Changes: plannedMap(targets, "removed")}, nil
	}
	changes, err := h.Packages.Plan(ctx, r.transaction(targets))
	if err != nil {
		return module.Diff{}, err
	}
	word := map[bool]string{false: "removed", true: "purged"}[r.purge]
	return module.Diff{Changes: r.report(changes), Planned: plannedMap(targets, word),
		Comment: describe(changes, "would be ")}, nil
}

// targets returns the packages that are installed or, for a purge, whose configuration files remain.
func (r *removed) targets(h *host.Host) ([]string, error) {
	v, err := h.Packages.Installed()
	if err != nil {
		return nil, err
	}
	list, err := r.packages(v)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, w := range list {
		there, err := r.isThere(h, v, w)
		if err != nil {
			return nil, err
		}
		if there {
			names = append(names, w.name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (r *removed) isThere(h *host.Host, v *host.Inventory, w wanted) (bool, error) {
	if r.purge && v.Leftover(w.name) != "" {
		return true, nil
	}
	if w.version == "" {
		return v.Version(w.name) != "", nil
	}
	d, err := newDemand(w.version, r.IgnoreEpoch, h)
	if err != nil {
		return false, fmt.Errorf("package %s: %w", w.name, err)
	}
	return d.allowsAny(v.Versions(w.name)), nil
}

func (r *removed) transaction(names []string) host.Transaction {
	t := host.Transaction{Action: host.RemovePackages}
	if r.purge {
		t.Action = host.PurgePackages
	}
	for _, name := range names {
		t.Packages = append(t.Packages, host.Wanted{Name: name})
	}
	return t
}

// report returns the changes in Salt's form: for a purge, packages that were installed are separate from those
// of which only configuration files were left.
func (r *removed) report(changes []host.PackageChange) *value.Map {
	if !r.purge {
		return changesMap(changes)
	}
	var leftovers, installed []host.PackageChange
	for _, c := range changes {
		if c.Purged {
			leftovers = append(leftovers, c)
		} else {
			installed = append(installed, c)
		}
	}
	return value.NewMap("removed", changesMap(leftovers), "installed", changesMap(installed))
}

func (r *removed) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	var report module.Report
	targets, err := r.targets(h)
	if err != nil {
		return report, err
	}
	changes, err := perform(ctx, h, r.transaction(targets))
	report.Changes, report.Comment = r.report(changes), describe(changes, "")
	if err != nil {
		return report, err
	}
	left, err := r.targets(h)
	if err == nil && len(left) > 0 {
		err = diag.Packages.Hint(fmt.Errorf("after the package manager was done these are still there: %s",
			strings.Join(left, ", ")),
			"see %s for what it did instead", historyOf(h))
	}
	return report, err
}

// Watched returns the state itself, as for pkg.installed.
func (r *removed) Watched() module.Resource { return r }
